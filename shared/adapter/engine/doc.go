// Package engine implements port.Engine for inference servers that are reached over HTTP:
// llama.cpp's llama-server, vLLM, Text Generation Inference (TGI) and Triton, and services with
// OpenAI's API, which are reached over TLS with a key.
//
// The servers differ in paths, in bodies and in how they fail. The dialect of each server
// implements the differences; the rest of the package is the same for all. Four rules apply to
// every engine:
//
//   - A completion is requested only as a stream. Closing the connection of a stream stops its
//     generation at once. For another request, llama-server checks for a closed connection once a
//     second at best. Without TLS, each stream has its own connection.
//   - An answer is complete when the engine's own final event was received: a finish reason, or
//     TGI's generated text. The end of the stream and [DONE] prove nothing: a vLLM that dies
//     sends status 200, an error event and a regular [DONE].
//   - Callers must not send more requests than the replica has slots. A llama-server without a
//     free slot keeps a request without any response, and does not notice that its client has
//     disconnected.
//   - No request is repeated, except one that a service refuses because of the name of a member. An idle connection is closed before llama-server's five
//     seconds, so that no request meets a connection that is being closed.
//
// TGI's dialect follows the published source of its router. It is tested against a stub,
// because the server cannot be installed without its container image.
package engine
