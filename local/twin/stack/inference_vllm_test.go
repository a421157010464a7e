//go:build engines

package stack_test

import (
	"testing"

	"github.com/sortie-dev/sortie/local/proof/engines/servers"
	"github.com/sortie-dev/sortie/local/proof/engines/tinymodel"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// TestRealVLLM runs the tests of real inference servers with vLLM. They use one server in
// sequence, because a start takes up to a minute. The test that kills the server is followed by
// a restart.
//
//nolint:paralleltest // its parts use one server
func TestRealVLLM(t *testing.T) {
	t.Parallel()
	t.Run(string(platform.EngineVLLM), func(t *testing.T) {
		t.Parallel()
		server := launch(t, install(t, platform.EngineVLLM), servers.Options{Shape: tinymodel.Slow})
		e := realEngine{platform.EngineVLLM, func(t *testing.T, o servers.Options) *servers.Server {
			t.Helper()
			if o.Port == server.Port { // the test has killed the server
				if err := server.Restart(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			return server
		}}
		for _, test := range []struct {
			name string
			run  func(t *testing.T, e realEngine)
		}{
			{"answer", realAnswer},
			{"cancel", realCancel},
			{"same seed", realSameSeed},
			{"streams are resumed after a kill", realStreamsAreResumed},
			{"client of OpenAI", realOpenAIClient},
			{"clients leave", realClientsLeave},
			{"engine is killed", realEngineIsKilled},
		} {
			t.Run(test.name, func(t *testing.T) { test.run(t, e) })
		}
	})
}
