package outside

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/sortie-dev/sortie/local/twin/flymachines/faults"
)

// Machines is a client of a Fly Machines API. It shares no code with the adapter under test.
type Machines struct {
	URL, Token string
	// App is the app of the machines.
	App string
}

// Machine is the part of a machine's record that tests read.
type Machine struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	State string `json:"state"`
	// Config is empty if the host of the machine is unreachable.
	Config struct {
		Env map[string]string `json:"env"`
	} `json:"config"`
}

// Of returns all machines ever created for a task, including deleted ones.
func (m Machines) Of(ctx context.Context, task string) ([]Machine, error) {
	return m.list(ctx, "metadata.run_id="+task+"&include_deleted=true")
}

// Live returns the existing machines.
func (m Machines) Live(ctx context.Context) ([]Machine, error) { return m.list(ctx, "") }

func (m Machines) list(ctx context.Context, query string) (list []Machine, err error) {
	return list, m.call(ctx, http.MethodGet, "/v1/apps/"+m.App+"/machines?"+query, nil, &list)
}

// SetFaults replaces the fault plan. Only the local machines API supports it.
func (m Machines) SetFaults(ctx context.Context, plan faults.Plan) error {
	return m.call(ctx, http.MethodPut, "/_local/faults", plan, nil)
}

func (m Machines) call(ctx context.Context, method, path string, in, out any) error {
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			return fmt.Errorf("cannot encode the request to the machines API: %w", err)
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, m.URL+path, &body)
	if err != nil {
		return fmt.Errorf("cannot create the request to the machines API: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+m.Token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("cannot call the machines API: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("machines API: got %s, want 200", answer.Status)
	}
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(answer.Body).Decode(out); err != nil {
		return fmt.Errorf("cannot decode the response of the machines API: %w", err)
	}
	return nil
}
