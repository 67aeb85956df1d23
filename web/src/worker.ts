// The worker: one program, one question after the other.
import { Core } from "./core";

type Asked = { id: number; module?: WebAssembly.Module; question?: unknown; line?: string; machine?: boolean };

let core: Promise<Core> | undefined;
const scope = self as unknown as DedicatedWorkerGlobalScope;

scope.onmessage = async (event: MessageEvent<Asked>) => {
  const { id, module, question, line, machine } = event.data;
  try {
    if (module) {
      core = Core.load(module);
      await core;
      scope.postMessage({ id, answer: { ok: null } });
      return;
    }
    const program = await core!;
    if (machine) program.machine();
    let last = 0;
    const progress = (share: number) => {
      const now = performance.now();
      if (now - last > 50 || share >= 1) {
        last = now;
        scope.postMessage({ id, progress: share });
      }
    };
    const answer = line === undefined ? program.ask(question, progress) : { ok: program.line(line) };
    scope.postMessage({ id, answer });
  } catch (fault) {
    scope.postMessage({ id, broken: fault instanceof Error ? fault.message : String(fault) });
  }
};
