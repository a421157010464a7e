package suite

import (
	"context"
	"crypto/tls"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/suite/scripts"

	"github.com/sortie-dev/sortie/local/proof/suite/clients"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
)

// Capability is an ability of a target that some tests require. Its text completes the phrase
// "can ...".
type Capability string

const (
	// ScriptedWorkers: machines run the tests' workers (Target.Scripts).
	ScriptedWorkers Capability = "run scripted workers"
	// Faults: Target.Machines.SetFaults works.
	Faults Capability = "inject faults into the machines API"
	// SeeMachines: Target.Machines can be queried.
	SeeMachines Capability = "list machines"
	// SeeObjects: Target.Buckets can be queried.
	SeeObjects Capability = "list the object store"
	// SampleSource: workers read the sample collection.
	SampleSource Capability = "export the sample collection"
	// AnySource: workers read a collection that contains Target.Root.
	AnySource Capability = "export a root"
	// FillPool: Target.MaxMachines is known, and the pool has no other users.
	FillPool Capability = "fill the pool of machines"
	// OwnNotFound: Sortie itself answers requests for unknown routes.
	OwnNotFound Capability = "answer for unknown routes itself"
	// OwnEncoding: Sortie itself checks a request's Content-Encoding.
	OwnEncoding Capability = "check the encoding of a request itself"
	// OtherTokens: Target.Others has additional client tokens.
	OtherTokens Capability = "use tokens of another tenant and of one scope" //nolint:gosec // G101: no credential
	// Programs: the image ProgramImage runs a shell.
	Programs Capability = "run the programs of jobs"
	// NoHostPrograms: images cannot name programs of the host.
	NoHostPrograms Capability = "refuse programs of the host"
	// Hooks: Sortie can call a receiver on the host of the tests, and has the secrets of
	// package clients.
	Hooks Capability = "call hooks of the suite and read its secrets"
	// ShortWindows: catchUpWindow can be seconds, because wake-ups are precise.
	ShortWindows Capability = "keep a catchUpWindow of seconds"
	// Streams: the API sends an answer while it is written, for up to minutes.
	Streams Capability = "stream answers"
	// NoticeLeaving: the stream of a disconnected reader ends.
	NoticeLeaving Capability = "notice that the reader of a stream has left"
	// MockEngine: pools can use the mock engine.
	MockEngine Capability = "serve the engine mock"
	// Servers: the image EngineImage runs EngineServer, and Sortie can call it in its machine.
	Servers Capability = "call servers in machines"
	// Bash: machines have bash and curl.
	Bash Capability = "run bash and curl in a machine"
)

// Target is a running Sortie deployment, configured with Settings where
// possible.
type Target struct {
	// Name is the name of the target in reports.
	Name string
	// URL is the API's base URL, including the stage. Token is a client token.
	URL, Token string
	// Others are additional client tokens.
	Others clients.Others
	// Gateway names response headers that a gateway adds. They are removed before checks.
	Gateway []string
	// Remapped names response headers of Sortie that clients receive with the prefix
	// "X-Amzn-Remapped-". A response that differs from that is an error.
	Remapped []string
	// Machines is the API that creates the machines.
	Machines outside.Machines
	Buckets  outside.Buckets
	// Root is an entity to export; empty means the sample's root.
	Root string
	// Scripts has the scripts of the workers.
	Scripts *scripts.Folder
	// MaxMachines is the pool's limit.
	MaxMachines int
	// LlamaServer is the address of a llama-server with two slots and 2,048 tokens of context,
	// for the tests of inference tasks. Empty means only the mock engine.
	LlamaServer string
	// Certificate is the certificate of the hook receiver. If it is nil, the receiver serves
	// HTTP.
	Certificate *tls.Certificate
	// HoldSweeps, if not nil, makes the target run no sweep until release is called.
	HoldSweeps func() (release func())
	// Every selects a sample of the tests: every n-th one, and those named in Also. 0 and 1
	// select all.
	Every int
	Also  []string
	// Timeout limits one wait for a task; 0 means the client's default.
	Timeout time.Duration
	// Examples is the folder to which the suite writes new examples for those that differ from
	// the published events. If it is empty, the suite only compares them.
	Examples string
	// Lacks maps each missing capability to the reason.
	Lacks map[Capability]string
}

// Settings returns the configuration of a target, without its addresses and secrets. Its limits
// suit many tests; a test that needs others requests them with its exports.
func Settings() map[string]string {
	return map[string]string{
		"SORTIE_MAX_MACHINES": "12", "SORTIE_START_TIMEOUT": "1m",
		"SORTIE_FURTHER_STARTS": "1", "SORTIE_MAX_ATTEMPTS": "2",
		"SORTIE_RETRY_DELAY": "1s", "SORTIE_RETRY_MAX_DELAY": "2s",
		"SORTIE_REDIRECT_OVER": "8388608",
		"SORTIE_HOOK_ALLOW":    "127.0.0.1",
		"SORTIE_ENGINE_ALLOW":  "127.0.0.1",
		"SORTIE_MOCK_ENGINE":   "true",
	}
}

// LookForBash adds Bash to lacks unless bash and curl are installed. If required is true, it
// fails the test instead.
func LookForBash(t *testing.T, required bool, lacks map[Capability]string) {
	t.Helper()
	for _, program := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			if required {
				t.Fatalf("%s is not installed", program)
			}
			lacks[Bash] = program + " is not installed on this host"
		}
	}
}

// lacks returns the first missing capability in needs, with the reason.
func (t Target) lacks(needs []Capability) (what, why string, lacks bool) {
	for _, need := range needs {
		if why, lacks := t.Lacks[need]; lacks {
			return string(need), why, true
		}
	}
	return "", "", false
}

// logLimitations logs the missing capabilities and the tests that are skipped for them.
func (t Target) logLimitations(to *testing.T, tests []Test) {
	to.Helper()
	if len(t.Lacks) == 0 {
		to.Logf("%s has all capabilities", t.Name)
	}
	for _, need := range slices.Sorted(maps.Keys(t.Lacks)) {
		var skipped []string
		for _, test := range tests {
			if slices.Contains(test.Requires, need) {
				skipped = append(skipped, test.Name)
			}
		}
		if need == SeeMachines || need == SeeObjects {
			skipped = append(skipped, "half of "+leftoversTest)
		}
		to.Logf("%s cannot %s: %s; skipped: %s", t.Name, need, t.Lacks[need], strings.Join(skipped, ", "))
	}
}

// setFaults replaces the fault plan of the machines API, if the target has one.
func (t Target) setFaults(ctx context.Context, plan plan) error {
	if _, _, lacks := t.lacks([]Capability{Faults}); lacks {
		return nil
	}
	return t.Machines.SetFaults(ctx, plan)
}
