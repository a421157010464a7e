//go:build localstack

package stepfunctions_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sortie-dev/sortie/local/proof/port/awstest"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/adapter/stepfunctions"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// askURL is the URL that the state machine's function calls.
const askURL = "SORTIE_TEST_ASK_URL"

// TestMain runs the tests or, in Lambda, the function, which sends its payload
// to the process of the tests.
func TestMain(m *testing.M) {
	url := os.Getenv(askURL)
	if url == "" {
		os.Exit(m.Run())
	}
	lambda.Start(func(ctx context.Context, payload json.RawMessage) (struct{}, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(payload))
		if err != nil {
			return struct{}{}, err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, answer.Body.Close()
	})
}

// faster divides all limits of the suite's machine and all waits, because LocalStack's clock
// cannot be advanced.
const faster = 5

// TestExecutionsOnLocalStack runs the suite with a state machine per test and
// one function for all. LocalStack keeps the executions, so a restart is a new
// client.
func TestExecutionsOnLocalStack(t *testing.T) {
	t.Parallel()
	cfg := awstest.LocalStack(t)
	t.Logf("limits and waits are one in %d of the suite's: LocalStack's clock cannot be moved", faster)
	t.Log("reopening is a new client on the same LocalStack: its executions end with it")
	asked := &questions{asks: map[string]func(execution, token string){}}
	server := httptest.NewServer(asked)
	t.Cleanup(server.Close)
	function := deploy(t, cfg, server.URL)
	porttest.Executions(t, func(t *testing.T, ask func(execution, token string)) porttest.ExecutionsHarness {
		t.Helper()
		machine := "executions-" + rand.Text()
		asked.add(machine, ask)
		open := func() port.Executions {
			executions, err := stepfunctions.New(cfg, create(t, cfg, machine, function))
			if err != nil {
				t.Fatal(err)
			}
			return steady{executions}
		}
		return porttest.ExecutionsHarness{
			Executions: open(), Reopen: open,
			Pass: func(d time.Duration) {
				passed := time.NewTimer(d / faster)
				defer passed.Stop()
				select {
				case <-passed.C:
				case <-t.Context().Done():
				}
			},
		}
	})
}

// steady repeats heartbeats that LocalStack fails to answer: it has an internal error while it
// ends the execution of the token.
type steady struct{ port.Executions }

func (s steady) Heartbeat(ctx context.Context, token string) error {
	const tries = 20
	err := s.Executions.Heartbeat(ctx, token)
	for n := 1; n < tries && fault.Is(err, fault.Unavailable); n++ {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
		err = s.Executions.Heartbeat(ctx, token)
	}
	return err
}

// questions are the calls of the function, by state machine.
type questions struct {
	mu   sync.Mutex
	asks map[string]func(execution, token string)
}

func (q *questions) add(machine string, ask func(execution, token string)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asks[machine] = ask
}

func (q *questions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var question struct{ Machine, Execution, Token string }
	if err := json.NewDecoder(r.Body).Decode(&question); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	q.mu.Lock()
	ask := q.asks[question.Machine]
	q.mu.Unlock()
	ask(question.Execution, question.Token)
}

// deploy creates the function: this program, with its TestMain.
func deploy(t *testing.T, cfg aws.Config, url string) (name string) {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = program.Close() }()
	var code bytes.Buffer
	archive := zip.NewWriter(&code)
	header := &zip.FileHeader{Name: "bootstrap", Method: zip.Deflate}
	header.SetMode(0o755)
	file, err := archive.CreateHeader(header)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(file, program); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	name = "ask-" + rand.Text()
	awstest.Prepare(t, cfg, "POST /2015-03-31/functions", map[string]any{
		"FunctionName": name, "Runtime": "provided.al2023", "Handler": "bootstrap", "Timeout": 30,
		"Role": "arn:aws:iam::000000000000:role/any", "Code": map[string]any{"ZipFile": code.Bytes()},
		"Environment": map[string]any{"Variables": map[string]string{askURL: url}},
	}, nil)
	return name
}

// create creates the suite's machine, or finds it, and returns its ARN.
func create(t *testing.T, cfg aws.Config, machine, function string) (arn string) {
	t.Helper()
	definition := porttest.ExecutionsMachine
	for _, change := range [][2]string{
		{`"FunctionName": "Ask"`, fmt.Sprintf(`"FunctionName": %q`, function)},
		{`"Payload": {`, fmt.Sprintf(`"Payload": {"machine": %q, `, machine)},
		{`"HeartbeatSeconds": 20`, fmt.Sprintf(`"HeartbeatSeconds": %d`, 20/faster)},
		{`"TimeoutSeconds": 60`, fmt.Sprintf(`"TimeoutSeconds": %d`, 60/faster)},
	} {
		if strings.Count(definition, change[0]) != 1 {
			t.Fatalf("got a machine without %s", change[0])
		}
		definition = strings.Replace(definition, change[0], change[1], 1)
	}
	var made struct{ StateMachineArn string }
	awstest.Prepare(t, cfg, "AWSStepFunctions.CreateStateMachine", map[string]any{
		"name": machine, "definition": definition, "roleArn": "arn:aws:iam::000000000000:role/any",
	}, &made)
	return made.StateMachineArn
}
