package push_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sortie-dev/sortie/functions/push"
)

func TestEachTenantOfABatchIsPushedOnce(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var pushed, reported []string
	handle := push.Handler(func(_ context.Context, tenant string) error {
		mu.Lock()
		defer mu.Unlock()
		pushed = append(pushed, tenant)
		if tenant == "b" {
			return errors.New("the feed does not respond")
		}
		return nil
	}, func(_ context.Context, tenant string, err error) {
		reported = append(reported, tenant+": "+err.Error())
	})
	answer, err := handle(t.Context(), push.Batch{Records: []push.Message{
		{ID: "1", Body: `{"tenant":"a"}`}, {ID: "2", Body: `{"tenant":"b"}`}, {ID: "3", Body: `{"tenant":"a"}`}, {ID: "4", Body: `{`}, {ID: "5", Body: `{}`},
	}})
	if slices.Sort(pushed); err != nil || answer != (push.Answer{Pushed: 1, Failed: 3}) || !slices.Equal(pushed, []string{"a", "b"}) {
		t.Errorf("got %+v, %v after pushes of %v, want one of each tenant", answer, err, pushed)
	}
	if text := strings.Join(reported, "\n"); len(reported) != 3 || !strings.Contains(text, "b: the feed does not respond") || !strings.Contains(text, "message 4: ") ||
		!strings.Contains(text, "message 5: malformed message, want a tenant") {
		t.Errorf("got the reports %s, want those of b, 4 and 5", text)
	}
}
