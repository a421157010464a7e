package contract

// Session is a session of inference tasks. The contract of the data plane has snake_case.
type Session struct {
	SessionID string `json:"session_id"`
	// TTLMS is after how many milliseconds without a further task the session expires.
	TTLMS int64 `json:"ttl_ms_remaining"`
	// Turns is the number of tasks that were answered or are in progress.
	Turns int64 `json:"turns"`
	// TurnsRemaining and the following are nil without a limit.
	TurnsRemaining *int64 `json:"turns_remaining,omitempty"`
	// KVBytes is the size of the session's key-value cache; 0 if the engine does not report it.
	KVBytes int64 `json:"kv_bytes"`
	// KVWarmth: an answer of the session has ended that had a token, so that a replica may
	// have the prefix of its prompts.
	KVWarmth        bool   `json:"kv_warmth"`
	TokensRemaining *int64 `json:"tokens_budget_remaining,omitempty"`
	TimeRemainingMS *int64 `json:"time_budget_remaining_ms,omitempty"`
	// CostRemaining is in dollars.
	CostRemaining *float64 `json:"cost_budget_remaining,omitempty"`
}

// BudgetLimit is the body of PUT /v1/budgets/{scope}. A part that is absent has the default
// limit.
type BudgetLimit struct {
	Turns    *int64 `json:"turns,omitempty"`
	Tokens   *int64 `json:"tokens,omitempty"`
	TimeMS   *int64 `json:"time_ms,omitempty"`
	CostNano *int64 `json:"cost_nanodollars,omitempty"`
}

// BudgetUse is what tasks hold or have spent of a budget.
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
	// Limit has the parts with a limit, Remaining what is neither held nor spent of them.
	Limit     BudgetLimit `json:"limit"`
	Held      BudgetUse   `json:"held"`
	Spent     BudgetUse   `json:"spent"`
	Remaining BudgetLimit `json:"remaining"`
	// Version counts the changes of the limit.
	Version int64 `json:"version"`
}
