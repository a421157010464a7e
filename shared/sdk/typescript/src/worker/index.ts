/** The worker of a task. It needs Node.js 20 or later. */
export { SortieError } from "../errors.js";
export { type Category, type StopCause, TaskFailure, TaskStopped } from "./errors.js";
export { type RunOptions, type Work, exitDone, exitFailed, exitNoTask, exitTerminated, runTask } from "./run.js";
export { type OutputOptions, Task } from "./task.js";
