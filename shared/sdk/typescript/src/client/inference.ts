import type * as Schemas from "../generated/schemas.js";
import type { CallOptions, OperationId } from "./http.js";
import type { List } from "./page.js";
import { type Filter, Resource } from "./resource.js";
import type { SseMessage } from "./sse.js";
import { messages, parsed } from "./stream.js";

export class Models extends Resource {
  create(request: Schemas.ModelRequest, options?: CallOptions): Promise<Schemas.Model> {
    return this.json("createModel", { body: request }, options);
  }

  list(filter: Filter<"listModels"> = {}, options?: CallOptions): List<Schemas.Model> {
    return this.collect("listModels", "models", { query: filter }, options);
  }

  get(modelId: string, options?: CallOptions): Promise<Schemas.Model> {
    return this.json("model", { path: { model_id: modelId } }, options);
  }

  /** Changes members of a model (RFC 7396). */
  patch(modelId: string, patch: object, options?: CallOptions): Promise<Schemas.Model> {
    return this.json("patchModel", { path: { model_id: modelId }, body: patch }, options);
  }

  delete(modelId: string, options?: CallOptions): Promise<void> {
    return this.json("deleteModel", { path: { model_id: modelId } }, options);
  }

  verify(modelId: string, options?: CallOptions): Promise<Schemas.ModelVerification> {
    return this.json("verifyModel", { path: { model_id: modelId } }, options);
  }

  setState(modelId: string, request: Schemas.ModelStateRequest, options?: CallOptions): Promise<Schemas.Model> {
    return this.json("setModelState", { path: { model_id: modelId }, body: request }, options);
  }
}

export class Sessions extends Resource {
  get(sessionId: string, options?: CallOptions): Promise<Schemas.Session> {
    return this.json("session", { path: { session_id: sessionId } }, options);
  }

  delete(sessionId: string, options?: CallOptions): Promise<void> {
    return this.json("deleteSession", { path: { session_id: sessionId } }, options);
  }
}

export class Budgets extends Resource {
  /** `scope` is `tenant`, `project:ID` or `session:ID`. */
  get(scope: string, options?: CallOptions): Promise<Schemas.Budget> {
    return this.json("budget", { path: { scope } }, options);
  }

  put(scope: string, limit: Schemas.BudgetLimit, options?: CallOptions): Promise<Schemas.Budget> {
    return this.json("putBudget", { path: { scope }, body: limit }, options);
  }

  /** What tasks have used. The list has all pages. */
  usage(query: Filter<"usage"> = {}, options?: CallOptions): List<Schemas.UsageRow> {
    return this.collect("usage", "rows", { query }, options);
  }
}

const generationMs = 15 * 60_000;

/** The routes that OpenAI's clients use. A stream of them is not resumed, but that of `streamStoredResponse`. */
export class OpenAI extends Resource {
  chat(request: Schemas.ChatRequest, options?: CallOptions): Promise<Schemas.ChatCompletion> {
    return this.json("createChatCompletion", { body: request, timeoutMs: generationMs }, options);
  }

  streamChat(request: Schemas.ChatRequest, options?: CallOptions): AsyncIterable<Record<string, unknown>> {
    return this.parts("createChatCompletion", request, options);
  }

  complete(request: Schemas.CompletionRequest, options?: CallOptions): Promise<Schemas.TextCompletion> {
    return this.json("createCompletion", { body: request, timeoutMs: generationMs }, options);
  }

  streamCompletion(request: Schemas.CompletionRequest, options?: CallOptions): AsyncIterable<Record<string, unknown>> {
    return this.parts("createCompletion", request, options);
  }

  embed(request: Schemas.EmbeddingRequest, options?: CallOptions): Promise<Schemas.EmbeddingList> {
    return this.json("createEmbedding", { body: request, timeoutMs: generationMs }, options);
  }

  rerank(request: Schemas.RerankRequest, options?: CallOptions): Promise<Schemas.Ranking> {
    return this.json("createRerank", { body: request, timeoutMs: generationMs }, options);
  }

  respond(request: Schemas.ResponseRequest, options?: CallOptions): Promise<Schemas.Response> {
    return this.json("createResponse", { body: request, timeoutMs: generationMs }, options);
  }

  streamResponse(request: Schemas.ResponseRequest, options?: CallOptions): AsyncIterable<Record<string, unknown>> {
    return this.parts("createResponse", request, options);
  }

  response(responseId: string, options?: CallOptions): Promise<Schemas.Response> {
    return this.json("getResponse", { path: { response_id: responseId } }, options);
  }

  /** Streams a stored response behind a sequence number. */
  async *streamStoredResponse(responseId: string, after?: number, options: CallOptions = {}): AsyncGenerator<Record<string, unknown>> {
    const response = await this.http.raw("getResponse", {
      path: { response_id: responseId }, query: { stream: true, starting_after: after }, accept: "text/event-stream",
    }, options);
    yield* decoded(messages(response, options.signal));
  }

  deleteResponse(responseId: string, options?: CallOptions): Promise<Schemas.DeletedResponse> {
    return this.json("deleteResponse", { path: { response_id: responseId } }, options);
  }

  cancelResponse(responseId: string, options?: CallOptions): Promise<Schemas.Response> {
    return this.json("cancelResponse", { path: { response_id: responseId }, repeatable: true }, options);
  }

  models(options?: CallOptions): Promise<Schemas.ServedModelList> {
    return this.json("listServedModels", {}, options);
  }

  model(model: string, options?: CallOptions): Promise<Schemas.ServedModel> {
    return this.json("getServedModel", { path: { model } }, options);
  }

  private async *parts(operation: OperationId, request: object, options: CallOptions = {}): AsyncGenerator<Record<string, unknown>> {
    const call = { body: { ...request, stream: true }, accept: "text/event-stream", timeoutMs: generationMs };
    yield* decoded(messages(await this.http.raw(operation, call, options), options.signal));
  }
}

async function* decoded(stream: AsyncIterable<SseMessage>): AsyncGenerator<Record<string, unknown>> {
  for await (const { data } of stream) {
    if (data === "[DONE]") return;
    yield parsed<Record<string, unknown>>(data);
  }
}
