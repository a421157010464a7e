import { SortieError } from "../errors.js";

/** The categories of failures. The category decides whether a run is retried. */
export type Category = "USER_CODE" | "DATA_QUALITY" | "INFRASTRUCTURE" | "CONFIGURATION" | "TIMEOUT";

/** Why the work has to stop. */
export type StopCause =
  /** A cancel was requested. The outcome is CANCELLED. */
  | "cancelled"
  /** The process received SIGTERM or SIGINT, and no cancel was requested. Nothing is reported. */
  | "terminated"
  /** The time of the attempt is over. The outcome is FAILED with category TIMEOUT. */
  | "deadline"
  /** The attempt was declared dead. Nothing is reported. */
  | "expired"
  /** Another attempt or another worker has the task. Nothing is reported. */
  | "superseded"
  /** The task had ended before the work started. Nothing is reported. */
  | "ended";

const failureMark = Symbol.for("@sortie/sdk/TaskFailure");
const stoppedMark = Symbol.for("@sortie/sdk/TaskStopped");

/** An error with a category. The work throws it to fail the attempt. */
export class TaskFailure extends SortieError {
  readonly category: Category;
  /** Overrides whether the category is retried. */
  readonly retryable: boolean | undefined;

  constructor(category: Category, message: string, options: { retryable?: boolean | undefined; cause?: unknown } = {}) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.name = "TaskFailure";
    this.category = category;
    this.retryable = options.retryable;
    Object.defineProperty(this, failureMark, { value: true });
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && (value as Record<symbol, unknown>)[failureMark] === true;
  }
}

/** The reason of `task.signal`, and what `task.check()` throws: the work has to stop. */
export class TaskStopped extends SortieError {
  readonly stopCause: StopCause;

  constructor(stopCause: StopCause, reason: string) {
    super(reason ? `the task has to stop: ${stopCause}: ${reason}` : `the task has to stop: ${stopCause}`);
    this.name = "TaskStopped";
    this.stopCause = stopCause;
    Object.defineProperty(this, stoppedMark, { value: true });
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && (value as Record<symbol, unknown>)[stoppedMark] === true;
  }
}
