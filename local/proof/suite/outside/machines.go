package outside

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/sortie-dev/sortie/local/twin/flymachines/faults"
)

// Machines is a Fly Machines API, seen by somebody who trusts nobody.
type Machines struct {
	URL, Token string
	// App has the machines.
	App string
}

// Machine is what is looked at of one.
type Machine struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	State string `json:"state"`
}

// Of lists the machines that were ever made for a task, as far as the API
// knows.
func (m Machines) Of(ctx context.Context, task string) ([]Machine, error) {
	return m.list(ctx, "metadata.run_id="+task+"&include_deleted=true")
}

// Live lists the machines that there are now.
func (m Machines) Live(ctx context.Context) ([]Machine, error) { return m.list(ctx, "") }

func (m Machines) list(ctx context.Context, query string) (list []Machine, err error) {
	return list, m.call(ctx, http.MethodGet, "/v1/apps/"+m.App+"/machines?"+query, nil, &list)
}

// Lie exchanges what goes wrong from now on. Only the local machines API can.
func (m Machines) Lie(ctx context.Context, plan faults.Plan) error {
	return m.call(ctx, http.MethodPut, "/_local/faults", plan, nil)
}

func (m Machines) call(ctx context.Context, method, path string, in, out any) error {
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			return fmt.Errorf("cannot write for the machines API: %w", err)
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, m.URL+path, &body)
	if err != nil {
		return fmt.Errorf("cannot ask the machines API: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+m.Token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("cannot ask the machines API: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the machines API answers %s", answer.Status)
	}
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(answer.Body).Decode(out); err != nil {
		return fmt.Errorf("cannot read what the machines API says: %w", err)
	}
	return nil
}
