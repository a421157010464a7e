package contract

// UsageSum is what tasks have used.
type UsageSum struct {
	Tasks        int64 `json:"tasks"`
	InputTokens  int64 `json:"inputTokens"`
	CachedTokens int64 `json:"cachedTokens"`
	OutputTokens int64 `json:"outputTokens"`
	TimeMS       int64 `json:"timeMs"`
	CostNano     int64 `json:"costNanodollars"`
}

// UsageRow is the usage of a group. Parts by which the answer does not group are absent. A task
// without a session has an empty one.
type UsageRow struct {
	Day     string  `json:"day,omitempty"`
	Model   string  `json:"model,omitempty"`
	Key     string  `json:"key,omitempty"`
	Session *string `json:"session,omitempty"`
	UsageSum
}

// Usage is the response of GET /v1/usage.
type Usage struct {
	From       string     `json:"from"`
	To         string     `json:"to"`
	By         string     `json:"by"`
	Rows       []UsageRow `json:"rows"`
	Total      UsageSum   `json:"total"`
	NextCursor string     `json:"nextCursor,omitempty"`
}
