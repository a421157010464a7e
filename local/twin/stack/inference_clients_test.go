package stack_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"

	"github.com/sortie-dev/sortie/local/proof/await"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestClientsLeave runs clientsLeave with the mock engine.
func TestClientsLeave(t *testing.T) {
	t.Parallel()
	g := start(t, served{Engines: mocked})
	clientsLeave(t, g)
}

// clients is an OpenAI client that counts the results of its requests.
type clients struct {
	sdk.Client

	model                   string
	answered, left, refused atomic.Int32
}

// clientsLeave runs 20 clients that send ten requests each in sequence. A third of the requests
// are abandoned, some before the answer begins. A tenth are refused, and the others are
// answered. Afterwards no slot is held, and the next request is answered.
func clientsLeave(t *testing.T, g *target) {
	t.Helper()
	const at, requests, length = 20, 10, 8
	c := clients{Client: sdk.NewClient(option.WithBaseURL(g.Client.URL+"/v1/"), option.WithAPIKey("unused"), option.WithMaxRetries(0)), model: g.Models[0]}
	var all sync.WaitGroup
	for client := range at {
		all.Go(func() {
			for n := range requests {
				switch i := client*requests + n; {
				case i%10 == 1:
					c.refuse(t, i)
				case i%3 == 0:
					c.leave(t, i)
				default:
					c.read(t, length)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d answered, %d left, %d refused", c.answered.Load(), c.left.Load(), c.refused.Load())
	if c.refused.Load() != at*requests/10 || c.answered.Load()+c.left.Load() != at*requests*9/10 {
		t.Errorf("got %d refused and %d others, want a tenth refused", c.refused.Load(), c.answered.Load()+c.left.Load())
	}
	ended := time.Now()
	await.Until(t, "free pool after the last request", func() bool {
		health := outside.Get[contract.PoolHealth](g.Client, "/v1/pools/pool0/health")
		return health.Held == 0 && health.Queued == 0
	})
	t.Logf("no slot was held %v after the last request", time.Since(ended))
	c.read(t, length)
}

// story returns a request for an answer of at most length tokens.
func (c *clients) story(prompt string, length int) sdk.ChatCompletionNewParams {
	return sdk.ChatCompletionNewParams{
		Model: c.model, Messages: []sdk.ChatCompletionMessageParamUnion{sdk.UserMessage(prompt)}, MaxCompletionTokens: param.NewOpt(int64(length)),
	}
}

// read reads an answer to its end and checks it.
func (c *clients) read(t *testing.T, length int) {
	t.Helper()
	stream := c.Chat.Completions.NewStreaming(t.Context(), c.story("tell a story", length))
	reason := ""
	for stream.Next() {
		if choices := stream.Current().Choices; len(choices) > 0 {
			reason += choices[0].FinishReason
		}
	}
	if stream.Err() != nil || reason != "length" {
		t.Errorf("got the reason %q (%v), want a whole answer", reason, stream.Err())
	}
	c.answered.Add(1)
}

// leave abandons a long answer after some parts, or after a delay in which it may not have
// begun.
func (c *clients) leave(t *testing.T, i int) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	parts := i / 3 % 4
	if parts == 0 {
		ctx, leave = context.WithTimeout(ctx, time.Duration(i%7)*10*time.Millisecond)
		defer leave()
	}
	stream := c.Chat.Completions.NewStreaming(ctx, c.story("tell a long story", 1500))
	for n := 0; (parts == 0 || n < parts) && stream.Next(); n++ {
		continue
	}
	if err := stream.Err(); err != nil && ctx.Err() == nil {
		t.Errorf("got %v, want parts of an answer", err)
	}
	c.left.Add(1)
}

// refuse sends a request that no engine of the tests can answer: it asks for more tokens than
// the context has, or its prompt is longer.
func (c *clients) refuse(t *testing.T, i int) {
	t.Helper()
	request := c.story("tell a story", 1_000_000)
	if i%20 == 1 {
		request = c.story(strings.Repeat("tell a story ", 40_000), 8)
	}
	_, err := c.Chat.Completions.New(t.Context(), request)
	if refused, ok := errors.AsType[*sdk.Error](err); !ok || refused.StatusCode != http.StatusBadRequest {
		t.Errorf("got %v, want 400", err)
	}
	c.refused.Add(1)
}
