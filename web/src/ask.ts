// Questions to the program: it runs in a worker, so that typing never waits for it. What is cancelled ends with its worker.
import type { Answered, Fault } from "./core";
import { token } from "./served";

/** What is wrong with what was asked. */
export class Faults extends Error {
  constructor(readonly faults: Fault[]) {
    super(faults.map((f) => f.text).join("\n"));
  }
}

/** Nobody waits for the answer any more. */
export class Cancelled extends Error {}

interface Waiting {
  resolve(value: unknown): void;
  reject(why: Error): void;
  progress(share: number): void;
}

let compiled: Promise<WebAssembly.Module> | undefined;

function module(): Promise<WebAssembly.Module> {
  compiled ??= (async () => {
    const response = await fetch("penstock.wasm");
    if (!response.ok) throw new Error(`penstock.wasm: ${response.status}`);
    try {
      return await WebAssembly.compileStreaming(Promise.resolve(response.clone()));
    } catch {
      // A server that does not know the type.
      return WebAssembly.compile(await response.arrayBuffer());
    }
  })();
  return compiled;
}

/** A program of one's own: questions to it are answered one after the other. */
export class Program {
  private worker: Worker | undefined;
  private ready: Promise<unknown> = Promise.resolve();
  private readonly waiting = new Map<number, Waiting>();
  private last = 0;
  private loading = false;

  private begin(): Worker {
    const worker = new Worker("worker.js");
    worker.onmessage = (event) => {
      const { id, answer, progress, broken } = event.data as {
        id: number;
        answer?: Answered;
        progress?: number;
        broken?: string;
      };
      const asked = this.waiting.get(id);
      if (!asked) return;
      if (progress !== undefined) return asked.progress(progress);
      this.waiting.delete(id);
      if (broken !== undefined) {
        this.end(new Error(broken));
        asked.reject(new Error(broken));
      } else if (answer && "ok" in answer) asked.resolve(answer.ok);
      else asked.reject(new Faults(answer?.faults ?? []));
    };
    worker.onerror = (event) => this.end(new Error(event.message));
    this.worker = worker;
    this.loading = true;
    this.ready = module()
      .then((compiled) => this.post({ module: compiled }))
      .finally(() => (this.loading = false));
    return worker;
  }

  private end(why: Error): void {
    this.worker?.terminate();
    this.worker = undefined;
    const all = [...this.waiting.values()];
    this.waiting.clear();
    for (const asked of all) asked.reject(why);
  }

  private post(message: object, progress: (share: number) => void = () => {}): Promise<unknown> {
    const id = ++this.last;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject, progress });
      this.worker!.postMessage({ id, ...message });
    });
  }

  /** Makes the program ready. */
  async warm(): Promise<void> {
    if (!this.worker) this.begin();
    await this.ready;
  }

  /** Asks; the answer's form is that of crates/penstock-ask. */
  async ask<T>(question: object, progress?: (share: number) => void): Promise<T> {
    await this.warm();
    return (await this.post({ question }, progress)) as T;
  }

  /** Has the program's machine run a line; `fresh`: a new machine. */
  async line(text: string, fresh = false): Promise<{ stdout: string; stderr: string; status: number; ended: boolean }> {
    await this.warm();
    return (await this.post({ line: text, machine: fresh })) as never;
  }

  /** Ends whatever it does. */
  cancel(): void {
    this.end(new Cancelled("cancelled"));
  }

  /** Whether it has something to answer. */
  get busy(): boolean {
    return !this.loading && this.waiting.size > 0;
  }
}

/** The native program behind `penstock serve`: one question at a time. */
class Native {
  private going: AbortController | undefined;

  async ask<T>(question: object, progress: (share: number) => void = () => {}, keep = ""): Promise<T> {
    const going = (this.going = new AbortController());
    try {
      const response = await fetch(`/api/ask${keep && `?keep=${encodeURIComponent(keep)}`}`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-penstock-token": token },
        body: JSON.stringify(question),
        signal: going.signal,
      });
      if (!response.ok || !response.body) throw new Error((await response.text()).trim());
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      let last: (Answered & { progress?: number }) | undefined;
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        const lines = (rest + part.value).split("\n");
        rest = lines.pop()!;
        for (const line of lines) {
          last = JSON.parse(line) as Answered & { progress?: number };
          if (last.progress !== undefined) progress(last.progress);
        }
      }
      if (last && "ok" in last) return last.ok as T;
      if (last && "faults" in last) throw new Faults(last.faults);
      throw new Error("the server ended before its answer");
    } catch (fault) {
      throw going.signal.aborted ? new Cancelled("cancelled") : fault;
    } finally {
      if (this.going === going) this.going = undefined;
    }
  }

  cancel(): void {
    this.going?.abort();
  }

  get busy(): boolean {
    return this.going !== undefined;
  }
}

/** The program that answers while one types. */
export const quick = new Program();
/** That for long runs, which can be cancelled. Behind `penstock serve` it is the native one, which can also keep the run's folder. */
export const long: Pick<Program, "cancel" | "busy"> & Pick<Native, "ask"> = token ? new Native() : new Program();
