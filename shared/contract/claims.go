package contract

// Issuer is the iss of every token that Sortie signs.
const Issuer = "sortie"

// The audiences of the tokens. A token is good for its audience alone.
const (
	// AudienceCallback is for the export contract's POST /callback/{task_id}.
	AudienceCallback = "sortie:callback"
	// AudienceWorker is for the worker contract's /v1/tasks/{task_id}/... .
	AudienceWorker = "sortie:worker"
)

// Claims say which attempt a token speaks for.
type Claims struct {
	TenantID    string `json:"tenantId"`
	WorkspaceID string `json:"workspaceId"`
	RunID       string `json:"runId"`
	TaskID      string `json:"taskId"`
	Attempt     int    `json:"attempt"`
}
