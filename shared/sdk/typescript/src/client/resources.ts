/** The groups of operations that a client has. */
export { type Content, Artifacts } from "./artifacts.js";
export { type EventStream, type EventStreamParams, Events, Webhooks } from "./events.js";
export { Budgets, Models, OpenAI, Sessions } from "./inference.js";
export { Jobs, Pools } from "./jobs.js";
export type { Filter, Query } from "./resource.js";
export { type TaskStreamEvent, Exports, Outputs, Runs, Tasks, isTerminal } from "./runs.js";
export { Server, Workers } from "./server.js";
