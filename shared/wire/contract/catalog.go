package contract

import "encoding/json"

// ModelSettings are the settings of a model that an operator can set. The contract of the
// control plane uses snake_case.
type ModelSettings struct {
	// Digest is "sha256:" and hexadecimal digits. Source is a URI.
	Digest string `json:"digest,omitempty"`
	Source string `json:"source,omitempty"`
	// Signed, if present, states whether there is a Signature.
	Signed *bool `json:"signed,omitempty"`
	// Signature is a DSSE envelope with an in-toto statement about Digest.
	Signature json.RawMessage `json:"signature,omitempty"`
	Engines   []string        `json:"engines,omitempty"`
	// EngineModel is the name of the model in the engine.
	EngineModel   string `json:"engine_model,omitempty"`
	Tokenizer     string `json:"tokenizer,omitempty"`
	ContextTokens int    `json:"context_tokens,omitempty"`
	// Workloads is ["completion"] by default.
	Workloads []string    `json:"workloads,omitempty"`
	Price     *ModelPrice `json:"price,omitempty"`
	// Split sends shares of the tasks for the model to other models.
	Split []ModelShare `json:"split,omitempty"`
	// Shadow copies shares of the tasks for the model to other models.
	Shadow []ModelShare `json:"shadow,omitempty"`
	Tags   []string     `json:"tags,omitempty"`
}

// ModelShare is a share of the tasks for a model, 1 to 100 percent.
type ModelShare struct {
	Model   string `json:"model"`
	Percent int    `json:"percent"`
}

// ModelPrice is the price of a token in nano-dollars.
type ModelPrice struct {
	Input int64 `json:"input_nanodollars"`
	// Cached is the price of an input token that the engine has read from its cache; nil is Input.
	Cached *int64 `json:"cached_nanodollars,omitempty"`
	// Output is 2000 by default.
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
	// Verified is the last successful verification of the signature with a trusted key. It is
	// null without one.
	Verified  *ModelVerified `json:"verified"`
	CreatedMS int64          `json:"created_ms"`
	CreatedBy string         `json:"created_by,omitempty"`
	UpdatedMS int64          `json:"updated_ms"`
	UpdatedBy string         `json:"updated_by,omitempty"`
}

// ModelVerified is a successful verification.
type ModelVerified struct {
	AtMS int64  `json:"at_ms"`
	Key  string `json:"key"`
}

// ModelList is the response of GET /v1/catalog/models.
type ModelList struct {
	Models []Model `json:"models"`
	// NextCursor is the cursor of the next page. It is empty on the last page.
	NextCursor string `json:"next_cursor,omitempty"`
}

// ModelVerification is the response of POST /v1/catalog/models/{model_id}/verify.
type ModelVerification struct {
	// Trusted reports whether a key that the deployment trusts has signed the model. If not,
	// Reason says why.
	Trusted bool   `json:"trusted"`
	Reason  string `json:"reason,omitempty"`
	Model   Model  `json:"model"`
}
