import type { ProblemCode } from "./generated/operations.js";

// Both the ESM and the CJS copy of this module may be loaded. instanceof therefore
// tests a mark that the copies share, not the prototype.
const marks = Symbol.for("@sortie/sdk/errors");

function hasMark(value: unknown, name: string): boolean {
  return typeof value === "object" && value !== null && ((value as Record<symbol, unknown>)[marks] as string[] | undefined)?.includes(name) === true;
}

/** The base class of the errors of this package. */
export class SortieError extends Error {
  /** @internal */
  declare readonly [marks]: readonly string[];

  constructor(message: string, options?: { cause?: unknown; mark?: readonly string[] }) {
    super(message, options && "cause" in options ? { cause: options.cause } : undefined);
    this.name = "SortieError";
    Object.defineProperty(this, marks, { value: ["SortieError", ...(options?.mark ?? [])], enumerable: false });
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return hasMark(value, "SortieError");
  }
}

/** The server did not answer: the connection failed or ended. */
export class ConnectionError extends SortieError {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, { ...options, mark: ["ConnectionError"] });
    this.name = "ConnectionError";
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return hasMark(value, "ConnectionError");
  }
}

/** The server did not answer within the time limit of the call. */
export class TimeoutError extends SortieError {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, { ...options, mark: ["TimeoutError"] });
    this.name = "TimeoutError";
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return hasMark(value, "TimeoutError");
  }
}

/** A webhook request has no valid signature, or is too old. */
export class WebhookVerificationError extends SortieError {
  constructor(message: string) {
    super(message, { mark: ["WebhookVerificationError"] });
    this.name = "WebhookVerificationError";
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return hasMark(value, "WebhookVerificationError");
  }
}

/** A defect of a definition, as a problem document lists it. */
export interface FieldProblem {
  field?: string;
  line: number;
  problem: string;
}

/** The server refused a request. */
export class ApiError extends SortieError {
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
    super(`${code}: ${detail}`, { mark: ["ApiError"] });
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

  static override [Symbol.hasInstance](value: unknown): boolean {
    return hasMark(value, "ApiError");
  }
}
