// One request: its form, its time limit, its repetition.

import { ConnectionError, MnemonError, ProtocolError, TimeoutError, problemError } from "./errors.js";

/**
 * @typedef {{ method: string, path: string, parameters: string[], takesFields: boolean,
 *   retry: string, json: boolean, progress: boolean }} Operation
 * @typedef {import("./index.d.ts").CallOptions} CallOptions
 * @typedef {{ url: string, key: string | undefined, fetch: typeof fetch, timeout: number,
 *   retries: number }} Settings
 * @typedef {{ [name: string]: unknown }} Fields
 */

/** A wait that is longer is left to the caller, who may have something better to do. */
const LONGEST_WAIT_S = 10;
const FIRST_WAIT_MS = 100;

/**
 * The answer to a request that is repeated as far as this is safe: a read always, a write with an
 * idempotency key always, another write only if the server did not begin it.
 * @template T
 * @param {Settings} settings
 * @param {Operation} operation
 * @param {string} path
 * @param {Fields} fields
 * @param {CallOptions} options
 * @param {(response: Response, attempt: { touch(): void }) => Promise<T>} read
 * @param {{ body?: string, contentType?: string, accept?: string, headers?: { [name: string]: string } }} [other]
 * @returns {Promise<T>}
 */
export async function send(settings, operation, path, fields, options, read, other = {}) {
  const { target, init } = form(settings, operation, path, fields, options, other);
  const repeatable = operation.retry !== "once";
  const retries = options.retries ?? settings.retries;
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await once(settings, target, init, options, read);
    } catch (error) {
      const wait = attempt < retries ? pause(error, attempt, repeatable) : undefined;
      if (wait === undefined) throw error;
      await sleep(wait, options.signal);
    }
  }
}

/**
 * @param {Settings} settings
 * @param {Operation} operation
 * @param {string} path
 * @param {Fields} given
 * @param {CallOptions} options
 * @param {{ body?: string, contentType?: string, accept?: string, headers?: { [name: string]: string } }} other
 */
function form(settings, operation, path, given, options, other) {
  /** @type {{ [name: string]: string }} */
  const headers = { Accept: other.accept ?? "application/json", ...other.headers };
  if (settings.key !== undefined) headers["Authorization"] = `Bearer ${settings.key}`;
  const fields = { ...given };
  if (operation.retry === "keyed") {
    headers["Idempotency-Key"] = String(options.idempotencyKey ?? fields["key"] ?? crypto.randomUUID());
    delete fields["key"];
  }
  let target = settings.url + path;
  /** @type {{ method: string, headers: { [name: string]: string }, body?: string }} */
  const init = { method: operation.method, headers };
  if (other.body !== undefined) {
    init.body = other.body;
    headers["Content-Type"] = other.contentType ?? "application/json";
    target += query(fields);
  } else if (operation.method === "POST" || operation.method === "PATCH") {
    init.body = JSON.stringify(Object.fromEntries(entries(fields)));
    headers["Content-Type"] = "application/json";
  } else {
    target += query(fields);
  }
  return { target, init };
}

/**
 * The fields that are set, as the API writes them.
 * @param {Fields} fields
 * @returns {Array<[string, unknown]>}
 */
function entries(fields) {
  return Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => {
      if (value instanceof Date) return [name, value.toISOString()];
      if (name === "filter" && typeof value === "object") return [name, JSON.stringify(value)];
      return [name, value];
    });
}

/** @param {Fields} fields */
function query(fields) {
  const parameters = new URLSearchParams();
  for (const [name, value] of entries(fields)) {
    for (const one of Array.isArray(value) ? value : [value]) parameters.append(name, String(one));
  }
  const text = parameters.toString();
  return text ? `?${text}` : "";
}

/**
 * @template T
 * @param {Settings} settings
 * @param {string} target
 * @param {RequestInit} init
 * @param {CallOptions} options
 * @param {(response: Response, attempt: { touch(): void }) => Promise<T>} read
 */
async function once(settings, target, init, options, read) {
  const { signal } = options;
  signal?.throwIfAborted();
  const abort = new AbortController();
  const stop = () => abort.abort(signal?.reason);
  signal?.addEventListener("abort", stop, { once: true });
  const limit = options.timeout ?? settings.timeout;
  let late = false;
  const expire = () => {
    late = true;
    abort.abort();
  };
  let timer = setTimeout(expire, limit);
  const touch = () => {
    clearTimeout(timer);
    timer = setTimeout(expire, limit);
  };
  try {
    const response = await settings.fetch(target, { ...init, signal: abort.signal, redirect: "error" });
    if (!response.ok) throw await refusal(response);
    return await read(response, { touch });
  } catch (error) {
    if (late) throw new TimeoutError(`no answer within ${limit} ms`, { code: "timeout", cause: error });
    signal?.throwIfAborted();
    if (error instanceof MnemonError) throw error;
    throw new ConnectionError(`cannot reach ${settings.url}: ${reason(error)}`, {
      code: "connection",
      cause: error,
    });
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
  }
}

/** @param {Response} response */
async function refusal(response) {
  const text = await response.text();
  let problem;
  try {
    problem = JSON.parse(text);
  } catch {
    problem = undefined;
  }
  const after = Number(response.headers.get("Retry-After") ?? NaN);
  return problemError(problem, response.status, Number.isFinite(after) ? after : undefined);
}

/** @param {unknown} error */
function reason(error) {
  const cause = error instanceof Error ? error.cause : undefined;
  if (cause instanceof Error) return cause.message || String(/** @type {{ code?: unknown }} */ (cause).code);
  return error instanceof Error ? error.message : String(error);
}

/**
 * How long to wait before the request is repeated; undefined if it must not be.
 * @param {unknown} error
 * @param {number} attempt
 * @param {boolean} repeatable
 */
function pause(error, attempt, repeatable) {
  if (!(error instanceof MnemonError)) return undefined;
  const refused = error.code === "busy" || error.code === "too-often";
  const lost =
    error instanceof ConnectionError ||
    error instanceof TimeoutError ||
    error.code === "unavailable" ||
    (error instanceof ProtocolError && [502, 503, 504].includes(error.status ?? 0));
  const never = error instanceof ConnectionError && neverSent(error.cause);
  if (!(refused || never || (repeatable && lost))) return undefined;
  if (error.retryAfter !== undefined) {
    return error.retryAfter <= LONGEST_WAIT_S ? error.retryAfter * 1000 : undefined;
  }
  return FIRST_WAIT_MS * 2 ** attempt * (0.5 + Math.random() / 2);
}

/**
 * Whether the connection was refused, so that nothing was sent. Browsers do not say.
 * @param {unknown} error
 */
function neverSent(error) {
  const cause = error instanceof Error ? error.cause : undefined;
  const code = /** @type {{ code?: unknown } | undefined} */ (cause)?.code;
  return code === "ECONNREFUSED" || code === "ENOTFOUND" || code === "EAI_AGAIN";
}

/**
 * @param {number} milliseconds
 * @param {AbortSignal} [signal]
 * @returns {Promise<void>}
 */
export function sleep(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(done, milliseconds);
    function done() {
      signal?.removeEventListener("abort", stop);
      resolve();
    }
    function stop() {
      clearTimeout(timer);
      reject(signal?.reason);
    }
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}
