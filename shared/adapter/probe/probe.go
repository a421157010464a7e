// Package probe calls a Sortie at its public address, as a worker does.
//
// It sends a heartbeat with an invalid token: an answer that refuses it as
// Sortie does shows that heartbeats arrive. Another route, such as /healthz, is
// another function in a deployed Sortie and may work while that of heartbeats
// is throttled or broken.
//
// A probe returns within its limit, and nil only for an answer of Sortie
// itself. It follows no redirect, as workers do not.
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

// limit bounds one probe; a worker's heartbeat has the same timeout.
const limit = 10 * time.Second

// door is the path of heartbeats in the worker contract, with a task that does
// not exist.
const door = "/v1/tasks/probe/heartbeat"

// New returns a probe of the Sortie at the address.
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
