package contract

import "encoding/json"

// ModelSettings are what an operator sets of a model. The contract of the control plane has
// snake_case.
type ModelSettings struct {
	// Digest is "sha256:" and hexadecimal digits, Source a URI.
	Digest string `json:"digest,omitempty"`
	Source string `json:"source,omitempty"`
	// Signed, if it is given, states whether there is a Signature.
	Signed *bool `json:"signed,omitempty"`
	// Signature is a DSSE envelope with a statement of in-toto about Digest.
	Signature json.RawMessage `json:"signature,omitempty"`
	Engines   []string        `json:"engines,omitempty"`
	// EngineModel is the engine's name of the model.
	EngineModel   string `json:"engine_model,omitempty"`
	Tokenizer     string `json:"tokenizer,omitempty"`
	ContextTokens int    `json:"context_tokens,omitempty"`
	// Workloads are "completion" by default.
	Workloads []string    `json:"workloads,omitempty"`
	Price     *ModelPrice `json:"price,omitempty"`
	Tags      []string    `json:"tags,omitempty"`
}

// ModelPrice is what a token costs, in nano-dollars.
type ModelPrice struct {
	Input int64 `json:"input_nanodollars"`
	// Output is 2000 if it is absent.
	Output *int64 `json:"output_nanodollars,omitempty"`
}

// ModelRequest is the body of POST /v1/catalog/models.
type ModelRequest struct {
	ID string `json:"id"`
	ModelSettings
}

// ModelStateRequest is the body of POST /v1/catalog/models/{model_id}/state.
type ModelStateRequest struct {
	// State is "Active" or "Retired".
	State string `json:"state"`
}

// Model is a model of the catalog.
type Model struct {
	ID    string `json:"id"`
	State string `json:"state"`
	ModelSettings
	// Verified is when a trusted key was last found to have signed the model; null without
	// one.
	Verified  *ModelVerified `json:"verified"`
	CreatedMS int64          `json:"created_ms"`
	CreatedBy string         `json:"created_by,omitempty"`
	UpdatedMS int64          `json:"updated_ms"`
	UpdatedBy string         `json:"updated_by,omitempty"`
}

// ModelVerified is a verification that has succeeded.
type ModelVerified struct {
	AtMS int64  `json:"at_ms"`
	Key  string `json:"key"`
}

// ModelList is what GET /v1/catalog/models returns.
type ModelList struct {
	Models []Model `json:"models"`
	// NextCursor is the cursor of the next page; empty at the end.
	NextCursor string `json:"next_cursor,omitempty"`
}

// ModelVerification is what POST /v1/catalog/models/{model_id}/verify returns.
type ModelVerification struct {
	// Trusted: a key that the deployment trusts has signed the model. Otherwise Reason says
	// what is wrong.
	Trusted bool   `json:"trusted"`
	Reason  string `json:"reason,omitempty"`
	Model   Model  `json:"model"`
}
