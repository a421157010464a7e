package contract

// Session is a session of inference tasks. The contract of the data plane uses snake_case.
type Session struct {
	SessionID string `json:"session_id"`
	// TTLMS is the number of milliseconds until the session expires if no further task is sent.
	TTLMS int64 `json:"ttl_ms_remaining"`
	// Turns is the number of tasks that were answered or are in progress.
	Turns int64 `json:"turns"`
	// TurnsRemaining and the other remaining budgets are nil without a limit.
	TurnsRemaining *int64 `json:"turns_remaining,omitempty"`
	// KVBytes is the size of the session's key-value cache; 0 if the engine does not report it.
	KVBytes int64 `json:"kv_bytes"`
	// KVWarmth reports whether an answer of the session has ended with at least one token. A
	// replica may then have the prefix of the session's prompts in its cache.
	KVWarmth        bool   `json:"kv_warmth"`
	TokensRemaining *int64 `json:"tokens_budget_remaining,omitempty"`
	TimeRemainingMS *int64 `json:"time_budget_remaining_ms,omitempty"`
	// CostRemaining is in dollars.
	CostRemaining *float64 `json:"cost_budget_remaining,omitempty"`
}

// BudgetLimit is the body of PUT /v1/budgets/{scope}. An absent part has the default limit.
type BudgetLimit struct {
	Turns    *int64 `json:"turns,omitempty"`
	Tokens   *int64 `json:"tokens,omitempty"`
	TimeMS   *int64 `json:"time_ms,omitempty"`
	CostNano *int64 `json:"cost_nanodollars,omitempty"`
}

// BudgetUse is the part of a budget that tasks reserve (Held) or have spent (Spent).
type BudgetUse struct {
	Turns    int64 `json:"turns"`
	Tokens   int64 `json:"tokens"`
	TimeMS   int64 `json:"time_ms"`
	CostNano int64 `json:"cost_nanodollars"`
}

// Budget is the budget of a scope.
type Budget struct {
	// Scope is "tenant", "project:ID" or "session:ID".
	Scope string `json:"scope"`
	// Limit contains the parts that are limited. Remaining is Limit less Held and Spent.
	Limit     BudgetLimit `json:"limit"`
	Held      BudgetUse   `json:"held"`
	Spent     BudgetUse   `json:"spent"`
	Remaining BudgetLimit `json:"remaining"`
	// Version counts the changes of the limit.
	Version int64 `json:"version"`
}
