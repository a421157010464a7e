import { SortieError, mark } from "../errors.js";

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

/** An error with a category. The work throws it to fail the attempt. */
export class TaskFailure extends SortieError {
  /** @internal */
  static override readonly [mark]: string = "TaskFailure";
  readonly category: Category;
  /** Overrides whether the category is retried. */
  readonly retryable: boolean | undefined;

  constructor(category: Category, message: string, options: { retryable?: boolean | undefined; cause?: unknown } = {}) {
    super(message, options);
    this.name = "TaskFailure";
    this.category = category;
    this.retryable = options.retryable;
  }
}

/** The reason of `task.signal`, and what `task.check()` throws: the work has to stop. */
export class TaskStopped extends SortieError {
  /** @internal */
  static override readonly [mark]: string = "TaskStopped";
  readonly stopCause: StopCause;

  constructor(stopCause: StopCause, reason: string) {
    super(reason ? `the task has to stop: ${stopCause}: ${reason}` : `the task has to stop: ${stopCause}`);
    this.name = "TaskStopped";
    this.stopCause = stopCause;
  }
}
