// Errors: one class for each thing that a caller can do about it.

import { ERROR_CLASSES } from "./operations.js";

/** Anything that the client throws. Decide by the class, or by `code`. */
export class MnemonError extends Error {
  /**
   * @param {string} message
   * @param {{ code: string, status?: number, field?: string, hint?: string, causes?: string[],
   *   requestId?: string, retryAfter?: number, cause?: unknown }} details
   */
  constructor(message, details) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = new.target.name;
    this.code = details.code;
    this.status = details.status;
    this.field = details.field;
    this.hint = details.hint;
    this.causes = details.causes ?? [];
    this.requestId = details.requestId;
    this.retryAfter = details.retryAfter;
  }
}

/** The request is wrong; `field` names the part. */
export class InvalidError extends MnemonError {}
/** The key is missing or not valid. */
export class UnauthorizedError extends MnemonError {}
/** The key, the host or the origin does not allow it. */
export class DeniedError extends MnemonError {}
/** It does not exist, or the key may not see it. */
export class NotFoundError extends MnemonError {}
/** It was changed meanwhile, exists already, or the idempotency key belongs to another request. */
export class ConflictError extends MnemonError {}
/** The request is too large. */
export class TooLargeError extends MnemonError {}
/** Too many requests, or a quota is used up; `retryAfter` has the seconds to wait. */
export class TooOftenError extends MnemonError {}
/** The server is busy: try again in a second. */
export class BusyError extends MnemonError {}
/** The server or its store cannot be reached at the moment. */
export class UnavailableError extends MnemonError {}
/** The store of this server cannot do it. */
export class UnsupportedError extends MnemonError {}
/** The disk of the server is full. */
export class FullError extends MnemonError {}
/** The store is damaged, or the server has a bug. */
export class InternalError extends MnemonError {}
/** No answer within the time limit. A write without an idempotency key may have been carried out. */
export class TimeoutError extends MnemonError {}
/** The server could not be reached, or the connection broke. */
export class ConnectionError extends MnemonError {}
/** The answer is not one of a Mnemon server. */
export class ProtocolError extends MnemonError {}

/** @type {{ [name: string]: typeof MnemonError }} */
const CLASSES = {
  InvalidError, UnauthorizedError, DeniedError, NotFoundError, ConflictError, TooLargeError,
  TooOftenError, BusyError, UnavailableError, UnsupportedError, FullError, InternalError, TimeoutError,
};

/**
 * The error of a problem document, or a ProtocolError if it is none.
 * @param {unknown} problem
 * @param {number} status
 * @param {number} [retryAfter]
 */
export function problemError(problem, status, retryAfter) {
  const told = /** @type {{ [key: string]: unknown }} */ (
    typeof problem === "object" && problem !== null ? problem : {}
  );
  if (typeof told["code"] !== "string" || typeof told["detail"] !== "string") {
    return new ProtocolError(`the answer has the status ${status} and is not a problem document`, {
      code: "protocol",
      status,
      ...(retryAfter === undefined ? {} : { retryAfter }),
    });
  }
  const field = text(told["field"]);
  const hint = text(told["hint"]);
  const requestId = text(told["request_id"]);
  const Class = CLASSES[ERROR_CLASSES[told["code"]] ?? ""] ?? MnemonError;
  return new Class(field ? `${field}: ${told["detail"]}` : told["detail"], {
    code: told["code"],
    status,
    ...(field === undefined ? {} : { field }),
    ...(hint === undefined ? {} : { hint }),
    ...(requestId === undefined ? {} : { requestId }),
    ...(retryAfter === undefined ? {} : { retryAfter }),
    causes: Array.isArray(told["causes"]) ? told["causes"].map(String) : [],
  });
}

/** @param {unknown} value */
function text(value) {
  return typeof value === "string" ? value : undefined;
}
