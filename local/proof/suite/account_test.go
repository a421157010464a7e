//go:build aws

package suite_test

import (
	"os"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/suite"
	"github.com/sortie-dev/sortie/local/proof/suite/clients"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/adapter/fly"
)

// TestAccount runs the suite against a stack on AWS. It costs a few exports and uses only the
// API's URL.
func TestAccount(t *testing.T) {
	t.Parallel()
	target := suite.Target{
		Name: "the stack on AWS", URL: os.Getenv("SORTIE_URL"), Token: os.Getenv("SORTIE_TOKEN"), Root: os.Getenv("SORTIE_ROOT"),
		Others: clients.Others{Stranger: os.Getenv("SORTIE_STRANGER_TOKEN"), Reader: os.Getenv("SORTIE_READER_TOKEN")},
		Gateway: []string{
			"X-Amzn-Requestid", "X-Amzn-Trace-Id", "X-Amz-Apigw-Id", "X-Amz-Cf-Id", "X-Amz-Cf-Pop", "X-Cache", "Via",
			"X-Amzn-Remapped-Date", "X-Amzn-Remapped-Content-Length",
		},
		Remapped: []string{"Www-Authenticate"},
		Machines: outside.Machines{URL: fly.DefaultBaseURL, Token: os.Getenv("SORTIE_FLY_TOKEN"), App: os.Getenv("SORTIE_FLY_APP")},
		Lacks: map[suite.Capability]string{
			suite.ScriptedWorkers: "its machines run the published worker",
			suite.Programs:        "its machines run the published worker",
			suite.Servers:         "its machines run the published worker",
			suite.Bash:            "its machines run the published worker",
			suite.NoticeLeaving:   "a function and its seat are held until the end of a stream",
			suite.Hooks:           "the receiver of the tests is on a private address",
			suite.MockEngine:      "it permits no engine for tests",
			suite.Faults:          "Fly's API has no fault injection",
			suite.SeeObjects:      "the test has no credentials of the buckets",
			suite.SampleSource:    "its workers read the deployment's own collection",
			suite.FillPool:        "its machines cost money and can be shared",
			suite.ShortWindows:    "wake-ups may be 90 s late, so shorter windows are refused",
			suite.OwnNotFound:     "API Gateway answers requests for unknown routes",
		},
	}
	if target.URL == "" || target.Token == "" {
		t.Fatal("missing SORTIE_URL or SORTIE_TOKEN: run make test-aws URL=... with the client's token in SORTIE_TOKEN")
	}
	if target.Others.Stranger == "" || target.Others.Reader == "" {
		target.Lacks[suite.OtherTokens] = "SORTIE_STRANGER_TOKEN and SORTIE_READER_TOKEN are not set; \"sortie tokens add\" creates them"
	}
	if target.Root == "" {
		target.Lacks[suite.AnySource] = "SORTIE_ROOT names no entity to export"
	}
	if target.Machines.Token == "" || target.Machines.App == "" {
		target.Lacks[suite.SeeMachines] = "SORTIE_FLY_TOKEN and SORTIE_FLY_APP are not set"
	}
	suite.Run(t, target)
}
