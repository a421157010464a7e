// Package probe calls a Sortie at its public address, as a worker would.
//
// It knocks at the workers' own door, with a token that no worker has: where that
// is turned away as Sortie turns one away, heartbeats are taken too. Another
// door, such as /healthz, is another function in a deployed Sortie, and may be
// open while that of the workers is throttled or broken.
//
// It promises to return within its limit, and nil only where the answer is
// Sortie's own. It refuses to follow a redirect: a worker does not either.
package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/fault"
)

// limit bounds one probe; a worker's heartbeat is not more patient.
const limit = 10 * time.Second

// door is where a worker's heartbeats go: the worker contract's path, with a task
// that there is not.
const door = "/v1/tasks/probe/heartbeat"

// New makes the probe of the Sortie at the address.
func New(publicURL string) func(context.Context) error {
	client := &http.Client{
		Timeout:       limit,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func(ctx context.Context) error {
		if err := probe(ctx, client, publicURL+door); err != nil {
			return fmt.Errorf("cannot reach %s: %w", publicURL, err)
		}
		return nil
	}
}

func probe(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer probe") // so that the keys of tokens are asked for
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized {
		return fmt.Errorf("it answers %d", answer.StatusCode)
	}
	var problem contract.Problem
	err = json.NewDecoder(io.LimitReader(answer.Body, 64<<10)).Decode(&problem)
	if err != nil || problem.Code != string(fault.Unauthenticated) {
		return errors.Join(errors.New("what answers is no Sortie"), err)
	}
	return nil
}
