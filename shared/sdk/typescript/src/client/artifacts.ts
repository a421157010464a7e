import type * as Schemas from "../generated/schemas.js";
import type { CallOptions } from "./http.js";
import type { List } from "./page.js";
import { type Filter, Resource } from "./resource.js";

/** What a request can store: bytes in any form. */
export type Content = string | Uint8Array | ArrayBuffer | Blob | ReadableStream<Uint8Array>;

export class Artifacts extends Resource {
  /** Stores a JSON document. */
  create(request: Schemas.ArtifactRequest, options?: CallOptions): Promise<Schemas.ArtifactCreated> {
    return this.json("createArtifact", { body: request, repeatable: true }, options);
  }

  /** Stores bytes under their SHA-256. */
  upload(
    content: Content, description: { kind?: string; tags?: string[]; parent?: string; metadata?: object; contentType?: string } = {}, options?: CallOptions,
  ): Promise<Schemas.ArtifactCreated> {
    const { contentType = "application/octet-stream", tags, metadata, ...rest } = description;
    const query = { ...rest, tags: tags?.join(" "), metadata: metadata && JSON.stringify(metadata) };
    return this.json("createArtifact", { query, body: content, contentType, repeatable: true }, options);
  }

  list(filter: Filter<"listArtifacts"> = {}, options?: CallOptions): List<Schemas.ArtifactSummary> {
    return this.collect("listArtifacts", "artifacts", { query: filter }, options);
  }

  /** Returns the description of an artifact. */
  describe(artifactId: string, options?: CallOptions): Promise<Schemas.ArtifactSummary> {
    return this.http.json("artifact", { path: { artifact_id: artifactId }, query: { content: false } }, options);
  }

  /** Returns a JSON artifact with its content. */
  get(artifactId: string, options?: CallOptions): Promise<Schemas.Artifact> {
    return this.http.json("artifact", { path: { artifact_id: artifactId } }, options);
  }

  /** Downloads an artifact that is not JSON. The body of the response is not read yet. */
  download(artifactId: string, options?: CallOptions): Promise<Response> {
    return this.http.raw("artifact", { path: { artifact_id: artifactId }, accept: "*/*" }, options);
  }
}
