// Links that hold what they show: compressed in the part of the address that no server sees.

async function through(bytes: Uint8Array, stream: CompressionStream | DecompressionStream): Promise<Uint8Array> {
  const written = new Blob([bytes as BlobPart]).stream().pipeThrough(stream as ReadableWritablePair<Uint8Array, Uint8Array>);
  return new Uint8Array(await new Response(written as ReadableStream).arrayBuffer());
}

/** The fragment of a state. */
export async function pack(state: unknown): Promise<string> {
  const bytes = await through(new TextEncoder().encode(JSON.stringify(state)), new CompressionStream("deflate-raw"));
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** Most bytes that a link may unpack to. */
const MOST = 8 << 20;

/** The state of a fragment; `undefined` where it is none. */
export async function unpack(fragment: string): Promise<unknown> {
  try {
    const text = atob(fragment.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(text, (c) => c.charCodeAt(0));
    const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
    const parts: Uint8Array[] = [];
    let sum = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      sum += value.length;
      // A short link can unpack to anything.
      if (sum > MOST) return undefined;
      parts.push(value);
    }
    return JSON.parse(await new Blob(parts as BlobPart[]).text());
  } catch {
    return undefined;
  }
}
