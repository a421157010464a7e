import type { ProblemCode } from "./generated/operations.js";

// Both the ESM and the CJS copy of this module may be loaded. instanceof therefore
// tests a mark that the copies share, not the prototype.

/** @internal Names a class of errors in all copies of the package. */
export const mark = Symbol.for("@sortie/sdk/errors");

/** Returns the marks of a class and of those that it extends. */
function marksOf(type: unknown): string[] {
  if (typeof type !== "function") return [];
  const own = Object.hasOwn(type, mark) ? [(type as typeof SortieError)[mark]] : [];
  return [...own, ...marksOf(Object.getPrototypeOf(type))];
}

/** The base class of the errors of this package. */
export class SortieError extends Error {
  /** @internal */
  static readonly [mark]: string = "SortieError";

  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "SortieError";
    Object.defineProperty(this, mark, { value: marksOf(new.target), enumerable: false });
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    // A class of a user has no mark of its own.
    if (!Object.hasOwn(this, mark)) return Function.prototype[Symbol.hasInstance].call(this, value);
    const marks: unknown = typeof value === "object" && value !== null ? (value as Record<symbol, unknown>)[mark] : undefined;
    return Array.isArray(marks) && marks.includes(this[mark]);
  }
}

/** The server did not answer: the connection failed or ended. */
export class ConnectionError extends SortieError {
  /** @internal */
  static override readonly [mark]: string = "ConnectionError";
  override name = "ConnectionError";
}

/** The server did not answer within the time limit of the call. */
export class TimeoutError extends SortieError {
  /** @internal */
  static override readonly [mark]: string = "TimeoutError";
  override name = "TimeoutError";
}

/** A webhook request has no valid signature, or is too old. */
export class WebhookVerificationError extends SortieError {
  /** @internal */
  static override readonly [mark]: string = "WebhookVerificationError";
  override name = "WebhookVerificationError";
}

/** A defect of a definition, as a problem document lists it. */
export interface FieldProblem {
  field?: string;
  line: number;
  problem: string;
}

/** The server refused a request. */
export class ApiError extends SortieError {
  /** @internal */
  static override readonly [mark]: string = "ApiError";
  /** The HTTP status. */
  readonly status: number;
  /** The stable code of the problem document; `HTTP_<status>` if the answer has none. */
  readonly code: ProblemCode | (string & {});
  /** The explanation for a person. */
  readonly detail: string;
  /** The id that finds the request in the logs of the server. */
  readonly correlationId: string | undefined;
  /** Whether the same request may succeed later. */
  readonly retryable: boolean;
  /** The invalid field, if one is to blame. */
  readonly field: string | undefined;
  /** All defects of a definition. */
  readonly problems: readonly FieldProblem[];
  /** How long to wait before the next request, in milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** The whole problem document. */
  readonly problem: Readonly<Record<string, unknown>>;

  constructor(status: number, problem: Record<string, unknown>, options: { correlationId?: string | undefined; retryAfterMs?: number | undefined } = {}) {
    // The OpenAI routes have their own form: {"error": {"code", "message"}}.
    const inner = (typeof problem.error === "object" ? problem.error : undefined) as { code?: unknown; message?: unknown } | null | undefined;
    const code = [problem.code, inner?.code].find((one) => typeof one === "string") as string | undefined ?? `HTTP_${status}`;
    const detail = [problem.detail, inner?.message].find((one) => typeof one === "string") as string | undefined ?? `unexpected status ${status}`;
    super(`${code}: ${detail}`);
    this.name = "ApiError";
    this.status = status;
    this.code = code;
    this.detail = detail;
    this.correlationId = typeof problem.correlationId === "string" ? problem.correlationId : options.correlationId;
    this.retryable = typeof problem.retryable === "boolean" ? problem.retryable : status === 429 || status >= 500;
    this.field = typeof problem.field === "string" ? problem.field : undefined;
    this.problems = Array.isArray(problem.problems) ? (problem.problems as FieldProblem[]) : [];
    this.retryAfterMs = options.retryAfterMs;
    this.problem = problem;
  }
}
