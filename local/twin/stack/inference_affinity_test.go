//go:build engines

package stack_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/sortie-dev/sortie/local/proof/engines/servers"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// letters returns a prompt of size bytes. Prompts of different subjects differ from the first
// bytes.
func letters(subject string, size int) string {
	return strings.Repeat(subject+" wrote a letter. ", size)[:size]
}

// affinity is a pool of two llama-servers with one slot each. A slot caches the last prompt.
type affinity struct {
	*target

	servers []*servers.Server
}

func twoReplicas(t *testing.T) affinity {
	t.Helper()
	installed := install(t, platform.EngineLlamaCpp)
	var two []*servers.Server
	for range 2 {
		two = append(two, launch(t, installed, servers.Options{Slots: 1}))
	}
	return affinity{start(t, served{Engines: addressed(platform.EngineLlamaCpp, two...)}), two}
}

// asked runs a prompt and returns its replica and the number of prompt tokens.
func (a affinity) asked(session, prompt string) (replica string, tokens int) {
	a.T.Helper()
	few := 4
	d := a.completed(a.create(contract.TaskRequest{SessionID: session, Prompt: prompt, MaxTokens: &few}))
	return d.Replica, *d.TokensIn
}

// computed returns the number of prompt tokens that the servers have computed. They found the
// others in their caches.
func (a affinity) computed() (tokens int) {
	a.T.Helper()
	for _, s := range a.servers {
		request, err := http.NewRequestWithContext(a.T.Context(), http.MethodGet, s.URL+"/metrics", nil)
		if err != nil {
			a.T.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			a.T.Fatal(err)
		}
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err := parser.TextToMetricFamilies(answer.Body)
		answer.Body.Close()
		if err != nil {
			a.T.Fatal(err)
		}
		for _, m := range families["llamacpp:prompt_tokens_total"].GetMetric() {
			tokens += int(value(m))
		}
	}
	return tokens
}

func value(m *dto.Metric) float64 { return m.GetCounter().GetValue() + m.GetUntyped().GetValue() }

// TestRealAffinity measures two llama-servers. All turns of a session, each with the earlier
// turns in its prompt, go to one server. So do prompts with the same prefix. The servers
// compute only new tokens.
func TestRealAffinity(t *testing.T) {
	t.Parallel()
	t.Run(string(platform.EngineLlamaCpp), func(t *testing.T) {
		t.Parallel()
		for _, row := range []struct {
			name string
			// session and prompt return the session and the prompt of turn j of subject i.
			session func(i int) string
			prompt  func(i, j int) string
		}{
			{"session", func(i int) string { return fmt.Sprint("s", i) }, func(i, j int) string { return letters(fmt.Sprint(i, " Ada"), 300*(j+1)) }},
			{"prefix", func(int) string { return "" }, func(i, j int) string { return letters(fmt.Sprint(i, " Ada"), 1100) + fmt.Sprint(" Answer ", j) }},
		} {
			t.Run(row.name, func(t *testing.T) {
				t.Parallel()
				a := twoReplicas(t)
				const subjects, turns = 6, 4
				before, whole, used := a.computed(), 0, map[string]int{}
				for i := range subjects {
					own := ""
					for j := range turns {
						replica, tokens := a.asked(row.session(i), row.prompt(i, j))
						if own == "" {
							own = replica
						}
						if replica != own {
							t.Errorf("subject %d: got the replica %s for turn %d, want %s", i, replica, j, own)
						}
						whole += tokens
					}
					used[own]++
				}
				computed := a.computed() - before
				t.Logf("computed %d of %d tokens of prompts (%d %%); subjects by replica: %v", computed, whole, 100*computed/whole, used)
				if 2*computed > whole {
					t.Errorf("got %d of %d tokens computed, want at most half of them", computed, whole)
				}
				if len(used) != 2 {
					t.Errorf("got the replicas %v, want both", used)
				}
			})
		}
		t.Run("together", func(t *testing.T) {
			t.Parallel()
			a := twoReplicas(t)
			const subjects, turns = 6, 4
			var clients sync.WaitGroup
			own := make([]map[string]int, subjects)
			for i := range subjects {
				own[i] = map[string]int{}
				clients.Go(func() {
					for j := range turns {
						replica, _ := a.asked(fmt.Sprint("s", i), letters(fmt.Sprint(i, " Ada"), 300*(j+1)))
						own[i][replica]++
					}
				})
			}
			clients.Wait()
			most := 0
			for _, each := range own {
				most += max(each["r1"], each["r2"])
			}
			t.Logf("%d of %d turns went to the replica of most of their session while all sessions were served together", most, subjects*turns)
			if got := own[0]["r1"] + own[0]["r2"]; got != turns {
				t.Errorf("got %d answers of a session, want %d", got, turns)
			}
		})
	})
}
