/** The client of Sortie and the verification of its webhooks. It needs no Node.js. */
export { Sortie } from "./client/client.js";
export type { CallOptions, ClientOptions, OperationId } from "./client/http.js";
export type { List, Page } from "./client/page.js";
export {
  type Artifacts, type Budgets, type Content, type EventStream, type EventStreamParams, type Events, type Exports, type Filter, type Jobs, type Models,
  type OpenAI, type Outputs, type Pools, type Query, type Runs, type Server, type Sessions, type TaskStreamEvent, type Tasks, type Webhooks, type Workers,
  isTerminal,
} from "./client/resources.js";
export { SseDecoder, type SseMessage } from "./client/sse.js";
export { ApiError, ConnectionError, type FieldProblem, SortieError, TimeoutError, WebhookVerificationError } from "./errors.js";
export type { ProblemCode } from "./generated/operations.js";
export type * as Schemas from "./generated/schemas.js";
export { type RawRequest, type VerifyOptions, verifyWebhook } from "./webhooks.js";
