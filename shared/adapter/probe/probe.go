// Package probe sends canaries: heartbeats of a task that is not a run. A canary takes the
// whole path of a worker's heartbeat, from the public address through the check of its token to
// the store. So its response shows that heartbeats are received. Another route, such as
// /healthz, is another function in a deployed Sortie. It may work while the route of heartbeats
// is throttled or broken.
//
// A canary returns within its limit. It returns nil only for a response of Sortie itself. Like
// workers, it follows no redirect.
package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// limit limits the duration of a canary. A worker's heartbeat has the same timeout.
const limit = 10 * time.Second

// New returns a function that sends a canary with a token to the Sortie instance at an address.
// task is the task id of canaries.
func New(publicURL, task string) func(ctx context.Context, token string) error {
	client := &http.Client{
		Timeout:       limit,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	address := strings.TrimSuffix(publicURL, "/") + "/v1/tasks/" + task + "/heartbeat"
	return func(ctx context.Context, token string) error {
		if err := send(ctx, client, address, token); err != nil {
			return fmt.Errorf("cannot send a heartbeat to %s: %w", publicURL, err)
		}
		return nil
	}
}

func send(ctx context.Context, client *http.Client, address, token string) error {
	body := strings.NewReader(`{"attempt":1,"workerId":"canary"}`)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, body)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("got status %d, want %d", response.StatusCode, http.StatusOK)
	}
	var answer contract.HeartbeatAnswer
	err = json.NewDecoder(io.LimitReader(response.Body, 64<<10)).Decode(&answer)
	if err != nil || !answer.Acknowledged.Acknowledged {
		return errors.Join(errors.New("the answer is not an acknowledgement of Sortie"), err)
	}
	return nil
}
