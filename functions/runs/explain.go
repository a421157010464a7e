package runs

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/sortie-dev/sortie/shared/app/jobs"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

func explained(svc *jobs.Explanations, w http.ResponseWriter, r *http.Request) error {
	x, err := svc.ExplainRun(r.Context(), httpkit.CallerOf(r.Context()), r.PathValue("run_id"))
	if err != nil {
		return fmt.Errorf("cannot explain the run: %w", err)
	}
	return httpkit.WriteJSON(w, http.StatusOK, api.Explanation(x))
}

// plan explains a run without creating it. The body has a definition or names a stored job.
func plan(svc *jobs.Explanations, w http.ResponseWriter, r *http.Request) error {
	body, err := httpkit.ReadDocument(w, r, bodyLimit, httpkit.TypeJSON)
	if err != nil {
		return err
	}
	planned, err := planOf(svc, r, body)
	if err != nil {
		return fmt.Errorf("cannot plan the run: %w", err)
	}
	return httpkit.WriteJSON(w, http.StatusOK, planned)
}

func planOf(svc *jobs.Explanations, r *http.Request, body []byte) (contract.Plan, error) {
	who := httpkit.CallerOf(r.Context())
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) == nil && members["jobId"] != nil {
		var request contract.PlanJobRequest
		if err := httpkit.ParseJSON(body, &request); err != nil {
			return contract.Plan{}, err
		}
		planned, err := svc.PlanJob(r.Context(), jobs.RunRequest{
			Identity: who, JobID: request.JobID, Parameters: request.Parameters, Inputs: api.Inputs(request.Inputs), ScheduledAt: request.ScheduledAt,
			Override: spec.Override{Priority: spec.Priority(request.Priority), Key: request.ConcurrencyKey},
		})
		return api.Plan(planned), err
	}
	document, _, err := takeInput(body)
	if err != nil {
		return contract.Plan{}, err
	}
	planned, err := svc.PlanOnce(r.Context(), who, document)
	return api.Plan(planned), err
}
