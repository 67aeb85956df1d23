// The other half of core/src/lib.rs: questions and answers as texts in the memory of the program. Used by the worker, and by the tests in node.

interface Exports {
  memory: WebAssembly.Memory;
  begin(): void;
  room(len: number): number;
  answered(): number;
  answer(): number;
  machine(): void;
  line(): number;
}

/** What the program gives: an answer, or what is wrong. */
export type Answered = { ok: unknown } | { faults: Fault[] };

/** What is wrong, with its place where it has one (line and column from 1; 0: none). */
export interface Fault {
  level: string;
  file: string;
  line: number;
  column: number;
  len: number;
  message: string;
  help: string;
  text: string;
}

/** The program: it keeps its machine from line to line, and nothing else. */
export class Core {
  private constructor(
    private readonly exports: Exports,
    private readonly heard: { panic: string; progress: (share: number) => void },
  ) {}

  /** From the compiled module. */
  static async load(module: WebAssembly.Module): Promise<Core> {
    const heard = { panic: "", progress: (_: number) => {} };
    let exports: Exports;
    const text = (at: number, len: number) => new TextDecoder().decode(new Uint8Array(exports.memory.buffer, at, len));
    const page = {
      tell: (share: number) => heard.progress(share),
      complain: (at: number, len: number) => {
        heard.panic = text(at, len);
      },
    };
    const instance = await WebAssembly.instantiate(module, { page });
    exports = instance.exports as unknown as Exports;
    exports.begin();
    return new Core(exports, heard);
  }

  private call(question: string, work: () => number): string {
    const bytes = new TextEncoder().encode(question);
    const at = this.exports.room(bytes.length);
    new Uint8Array(this.exports.memory.buffer, at, bytes.length).set(bytes);
    this.heard.panic = "";
    let len: number;
    try {
      len = work();
    } catch (fault) {
      // The program's state cannot be trusted any more: whoever holds it takes a new one.
      const deep = fault instanceof RangeError || /call stack|recursion/i.test(String(fault));
      const why = deep
        ? "it stands too deep within itself for a browser: penstock check, run and explain have more room on your computer"
        : `a fault of penstock: ${this.heard.panic || String(fault)}; please report it with what you asked`;
      throw new Error(why);
    }
    return new TextDecoder().decode(new Uint8Array(this.exports.memory.buffer, this.exports.answered(), len));
  }

  /** Answers a question. */
  ask(question: unknown, progress: (share: number) => void = () => {}): Answered {
    this.heard.progress = progress;
    return JSON.parse(this.call(JSON.stringify(question), () => this.exports.answer())) as Answered;
  }

  /** A new machine takes the place of the one there was. */
  machine(): void {
    this.exports.machine();
  }

  /** Has the machine run a line. */
  line(text: string): { stdout: string; stderr: string; status: number; ended: boolean } {
    return JSON.parse(this.call(text, () => this.exports.line()));
  }
}
