// Server-sent events.

/**
 * The events of a body. An event without data has the data undefined.
 * @param {AsyncIterable<Uint8Array>} chunks
 * @returns {AsyncGenerator<{ id?: string, event?: string, data?: string }>}
 */
export async function* parseEvents(chunks) {
  /** @type {{ id?: string, event?: string, data?: string }} */
  let current = {};
  for await (const line of lines(chunks)) {
    if (line === "") {
      if (Object.keys(current).length > 0) yield current;
      current = {};
      continue;
    }
    const colon = line.indexOf(":");
    if (colon === 0) {
      // A comment: the server shows that it is there. The reader may want to know.
      yield {};
      continue;
    }
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + (line[colon + 1] === " " ? 2 : 1));
    if (name === "id") current.id = value;
    else if (name === "event") current.event = value;
    else if (name === "data") current.data = current.data === undefined ? value : `${current.data}\n${value}`;
  }
}

/**
 * The lines of a body, without their ends. A last line that has no end is left out.
 * @param {AsyncIterable<Uint8Array>} chunks
 * @returns {AsyncGenerator<string>}
 */
export async function* lines(chunks) {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of chunks) {
    // Only the new part is searched, so that a line of many chunks costs no more than its length.
    const text = decoder.decode(chunk, { stream: true });
    let from = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", from)) {
      const line = rest + text.slice(from, end);
      rest = "";
      yield line.endsWith("\r") ? line.slice(0, -1) : line;
      from = end + 1;
    }
    rest += text.slice(from);
  }
}

/**
 * The chunks of a body: browsers of today cannot all iterate over a stream.
 * @param {ReadableStream<Uint8Array>} stream
 * @returns {AsyncGenerator<Uint8Array>}
 */
export async function* chunksOf(stream) {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    // The reader left early: the connection is of no more use.
    reader.cancel().catch(() => {});
  }
}
