// Package engine implements port.Engine for inference servers that are reached over HTTP:
// llama.cpp's llama-server, vLLM, Text Generation Inference (TGI) and Triton.
//
// The servers differ in paths, bodies and in how they fail; the dialect of each knows
// that, and the rest of the package is the same for all. Four rules hold for every engine:
//
//   - A completion is requested as a stream only. Closing the connection of a stream stops
//     its generation at once; llama-server looks for the closed connection of another
//     request once a second at best. Without TLS, each stream has a connection of its own.
//   - An answer is complete when the engine's own final event has come: a finish reason, or
//     TGI's generated text. The end of the stream and [DONE] prove nothing: a vLLM that
//     dies sends status 200, an error event and a regular [DONE].
//   - No more requests are sent than the replica has slots. That is the caller's part: a
//     llama-server without a free slot keeps a request without any answer, and does not
//     notice that its client has gone.
//   - No request is repeated. An idle connection is closed before llama-server's five
//     seconds, so that no request meets a connection that is being closed.
//
// TGI's dialect follows the published source of its router; it is tested against a
// stand-in, because the server cannot be installed without its container image.
package engine
