package api

import (
	"encoding/json"
	"fmt"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/limit"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

// Environment encodes an assignment as the variables of the export contract and
// the TASK_ENVELOPE of the worker contract. The result contains secrets and is
// never logged.
func Environment(a orchestrator.Assignment) (map[string]string, error) {
	envelope, err := json.Marshal(envelope(a))
	if err != nil {
		return nil, fmt.Errorf("cannot encode the task's envelope: %w", err)
	}
	env := map[string]string{
		"TASK_ID": a.Run.TaskID, "BATCH_ID": batchOf(a.Run),
		"PI": a.Run.Work.PI, "EXPORT_FORMAT": a.Run.Work.Format, "EXPORT_OPTIONS": string(a.Run.Work.Options),
		"CALLBACK_URL": a.CallbackURL, "SOURCE_API_URL": a.SourceURL,
		contract.EnvelopeVariable: string(envelope),
	}
	if a.Bucket.AccessKeyID != "" {
		env["R2_ACCOUNT_ID"], env["R2_BUCKET"] = a.Bucket.AccountID, a.Bucket.Bucket
		env["R2_ACCESS_KEY_ID"], env["R2_SECRET_ACCESS_KEY"] = a.Bucket.AccessKeyID, a.Bucket.SecretAccessKey
	}
	if a.Bucket.Endpoint != "" {
		env["R2_ENDPOINT"] = a.Bucket.Endpoint
	}
	if a.Bucket.Endpoint != "" && a.Bucket.Region != "" && a.Bucket.Region != limit.R2Region {
		env["R2_REGION"] = a.Bucket.Region
	}
	return env, nil
}

func envelope(a orchestrator.Assignment) contract.TaskEnvelope {
	r := a.Run
	renewal := Renewal(&a.Grant)
	return contract.TaskEnvelope{
		TaskID: r.TaskID, RunID: r.ID, AssetID: r.Work.PI, TaskKey: r.Work.Kind + "/" + r.Work.Format,
		TenantID: r.Tenant, WorkspaceID: r.Workspace, CorrelationID: r.CorrelationID, Attempt: r.Attempt.Number,
		Resources: contract.Resources{
			CPUMillicores: int64(a.CPUs) * 1000, MemoryBytes: int64(a.MemoryMB) << 20,
			TimeoutMS: r.Policy.TimeLimit.Milliseconds(),
		},
		EnqueuedAt: r.CreatedAt, Deadline: r.Deadline(), CallbackBaseURL: a.PublicURL,
		TaskToken: renewal.TaskToken, TokenExpiresAt: renewal.TokenExpiresAt,
		HeartbeatIntervalMS: r.Policy.HeartbeatInterval.Milliseconds(),
		HeartbeatTimeoutMS:  r.Policy.HeartbeatTimeout.Milliseconds(),
		CancelGracePeriodMS: r.Policy.CancelGrace.Milliseconds(),
		Output:              renewal.Output, Log: renewal.Log,
	}
}

// Renewal returns the wire form of a renewal; empty for nil.
func Renewal(g *orchestrator.Grant) contract.TokenRenewal {
	if g == nil {
		return contract.TokenRenewal{}
	}
	upload := func(u orchestrator.UploadURL) *contract.Upload {
		return &contract.Upload{URL: u.URL, Key: u.Key, ExpiresAt: g.ExpiresAt}
	}
	return contract.TokenRenewal{TaskToken: g.Token, TokenExpiresAt: g.ExpiresAt, Output: upload(g.Output), Log: upload(g.Log)}
}
