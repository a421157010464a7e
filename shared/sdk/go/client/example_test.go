package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/sdk/go/api"
	"github.com/sortie-dev/sortie/shared/sdk/go/client"
)

// server returns a client of a server that has the given answers, by method and path. A path
// that it does not have is a 404.
func server(answers map[string]string) (c *client.Client, stop func()) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := answers[r.Method+" "+r.URL.RequestURI()]
		if !ok {
			text, ok = answers[r.Method+" "+r.URL.Path]
		}
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			text = `{"status": 404, "title": "Not Found", "detail": "there is no such thing", "code": "NOT_FOUND"}`
		}
		_, _ = io.WriteString(w, text)
	}))
	c, err := client.New(client.Config{URL: s.URL})
	if err != nil {
		panic(err)
	}
	return c, s.Close
}

func ExampleNew() {
	c, err := client.New(client.Config{URL: "https://sortie.example.org", Token: "a-token", Timeout: 10 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = c
	_, err = client.New(client.Config{URL: "sortie.example.org"})
	fmt.Println(err)
	// Output: malformed URL, want http://HOST:PORT
}

func ExampleFromEnv() {
	c, err := client.New(client.FromEnv(os.Getenv)) // SORTIE_URL and SORTIE_TOKEN
	fmt.Println(c != nil, err)
	// Output: true <nil>
}

func ExampleRuns_Create() {
	c, stop := server(map[string]string{"POST /v1/runs": `{"runId": "job_1", "taskId": "job_1"}`})
	defer stop()
	run, err := c.Runs.Create(context.Background(), &api.RunDefinition{
		Image: "exec:/bin/echo", Command: []string{"hello"}, Priority: "batch",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(run.RunID)
	// Output: job_1
}

func ExampleWithIdempotencyKey() {
	c, stop := server(map[string]string{"POST /v1/runs": `{"runId": "job_1"}`})
	defer stop()
	// A program that crashed and sends the request again gets the same run.
	run, err := c.Runs.Create(context.Background(), &api.RunDefinition{Image: "exec:/bin/true"}, client.WithIdempotencyKey("invoice-2026-01"))
	fmt.Println(run.RunID, err)
	// Output: job_1 <nil>
}

func ExampleRuns_Wait() {
	c, stop := server(map[string]string{"GET /v1/runs/job_1": `{"runId": "job_1", "state": "Completed"}`})
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	run, err := c.Runs.Wait(ctx, "job_1")
	fmt.Println(run.State == api.StateCompleted, err)
	// Output: true <nil>
}

func ExampleRuns_List() {
	c, stop := server(map[string]string{
		"GET /v1/runs?state=Failed":          `{"tasks": [{"taskId": "a"}, {"taskId": "b"}], "nextCursor": "2"}`,
		"GET /v1/runs?cursor=2&state=Failed": `{"tasks": [{"taskId": "c"}]}`,
	})
	defer stop()
	for run, err := range c.Runs.List(client.RunsListQuery{State: api.StateFailed}).All(context.Background()) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(run.TaskID)
	}
	// Output:
	// a
	// b
	// c
}

func ExamplePages_Pages() {
	c, stop := server(map[string]string{
		"GET /v1/jobs":          `{"jobs": [{"id": "a"}, {"id": "b"}], "nextCursor": "2"}`,
		"GET /v1/jobs?cursor=2": `{"jobs": [{"id": "c"}]}`,
	})
	defer stop()
	for page, err := range c.Jobs.List(client.JobsListQuery{}).Pages(context.Background()) {
		fmt.Println(len(page.Jobs), err)
	}
	// Output:
	// 2 <nil>
	// 1 <nil>
}

func ExampleRuns_Cancel() {
	c, stop := server(map[string]string{"POST /v1/runs/job_1/cancel": `{"taskId": "job_1", "state": "Running", "result": "requested"}`})
	defer stop()
	answer, err := c.Runs.Cancel(context.Background(), "job_1", &api.CancelRequest{Reason: "not needed any more"})
	fmt.Println(answer.Result, err)
	// Output: requested <nil>
}

func ExampleRuns_Retry() {
	c, stop := server(map[string]string{"POST /v1/runs/job_1/retry": `{"taskId": "job_2", "retryOf": "job_1"}`})
	defer stop()
	answer, err := c.Runs.Retry(context.Background(), "job_1", nil)
	fmt.Println(answer.TaskID, err)
	// Output: job_2 <nil>
}

func ExampleRuns_RetryMany() {
	c, stop := server(map[string]string{"POST /v1/runs:retry": `{"dryRun": true, "runs": [{"taskId": "a"}, {"taskId": "b"}]}`})
	defer stop()
	request := &api.BulkRequest{Filter: api.RunFilter{JobID: "nightly"}, DryRun: new(true)}
	for {
		page, err := c.Runs.RetryMany(context.Background(), request)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(len(page.Runs), "runs")
		if request.Cursor = page.NextCursor; request.Cursor == "" {
			return
		}
	}
	// Output: 2 runs
}

func ExampleRuns_Explain() {
	c, stop := server(map[string]string{"GET /v1/runs/job_1/explain": `{"message": "It waits for a slot of the pool default."}`})
	defer stop()
	explanation, err := c.Runs.Explain(context.Background(), "job_1")
	fmt.Println(explanation.Message, err)
	// Output: It waits for a slot of the pool default. <nil>
}

func ExampleRuns_Plan() {
	c, stop := server(map[string]string{"POST /v1/runs:plan": `{"accepted": true}`})
	defer stop()
	plan, err := c.Runs.Plan(context.Background(), api.PlanJobRequest{JobID: "nightly"})
	fmt.Println(plan.Accepted, err)
	// Output: true <nil>
}

func ExampleTasks_Logs() {
	c, stop := server(map[string]string{"GET /v1/tasks/job_1/logs": "hello\n"})
	defer stop()
	text, err := c.Tasks.Logs(context.Background(), "job_1", client.LogQuery{})
	fmt.Print(text, err)
	// Output:
	// hello
	// <nil>
}

func ExampleTasks_FollowLogs() {
	c, stop := server(map[string]string{"GET /v1/tasks/job_1/logs": `{"attempt": 1, "stream": "stdout", "data": "aGVsbG8K", "next": 9}` + "\n" + `{"next": 9, "ended": true}` + "\n"})
	defer stop()
	for line, err := range c.Tasks.FollowLogs(context.Background(), "job_1", client.LogQuery{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Print(string(line.Data))
	}
	// Output: hello
}

func ExampleTasks_Download() {
	c, stop := server(map[string]string{"GET /download/job_1": "a,b\n1,2\n"})
	defer stop()
	size, err := c.Tasks.Download(context.Background(), "job_1", os.Stdout)
	fmt.Println(size, err)
	// Output:
	// a,b
	// 1,2
	// 8 <nil>
}

func ExampleJobs_Put() {
	c, stop := server(map[string]string{"PUT /v1/jobs/nightly": `{"id": "nightly", "version": 1}`})
	defer stop()
	job, err := c.Jobs.Put(context.Background(), "nightly", &api.JobDefinition{
		Image: "exec:/usr/bin/python3", Command: []string{"/srv/report.py"}, Schedule: "0 3 * * *", TimeZone: "Europe/Berlin",
	}, client.JobsPutQuery{}, client.WithCreateOnly())
	fmt.Println(job.ID, job.Version, err)
	// Output: nightly 1 <nil>
}

func ExampleWithIfMatch() {
	c, stop := server(map[string]string{"PATCH /v1/jobs/nightly": `{"id": "nightly", "version": 8}`})
	defer stop()
	job, err := c.Jobs.Patch(context.Background(), "nightly", map[string]any{"schedule": "0 4 * * *"}, client.WithIfMatch(`"7"`))
	fmt.Println(job.Version, err)
	// Output: 8 <nil>
}

func ExampleJobs_Run() {
	c, stop := server(map[string]string{"POST /v1/jobs/nightly/runs": `{"runId": "job_1"}`})
	defer stop()
	run, err := c.Jobs.Run(context.Background(), "nightly", &api.JobRunRequest{Parameters: map[string]string{"day": "2026-01-02"}})
	fmt.Println(run.RunID, err)
	// Output: job_1 <nil>
}

func ExampleEvents_Stream() {
	c, stop := server(map[string]string{"GET /v1/events/stream": "id: c-1\nevent: job.completed\ndata: {\"eventId\": \"1\", \"eventType\": \"job.completed\"}\n\n"})
	defer stop()
	stream := c.Events.Stream(client.EventStreamQuery{After: "earliest", Types: []string{"job.*"}})
	for event, err := range stream.All(context.Background()) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(event.EventType, stream.Cursor()) // store both in one transaction
		break
	}
	// Output: job.completed c-1
}

func ExampleEvents_List() {
	c, stop := server(map[string]string{
		"GET /v1/events?after=earliest": `{"events": [{"eventType": "job.queued"}, {"eventType": "job.started"}], "next": "c-2"}`,
		"GET /v1/events?after=c-2":      `{"events": [], "next": "c-2"}`,
	})
	defer stop()
	for event, err := range c.Events.List(client.EventsListQuery{After: "earliest"}).All(context.Background()) {
		fmt.Println(event.EventType, err)
	}
	// Output:
	// job.queued <nil>
	// job.started <nil>
}

func ExampleEvents_WebSocket() {
	c, err := client.New(client.Config{URL: "http://127.0.0.1:8080"})
	if err != nil {
		fmt.Println(err)
		return
	}
	address, _ := c.Events.WebSocket(client.EventStreamQuery{Types: []string{"job.*"}})
	fmt.Println(address)
	// Output: ws://127.0.0.1:8080/v1/events/ws?gap=fail&types=job.%2A
}

func ExampleVerifyWebhook() {
	handler := func(w http.ResponseWriter, r *http.Request) {
		event, err := client.Verifier{Secrets: []string{"whsec_c2VjcmV0"}}.Read(r)
		if err != nil {
			http.Error(w, "not verified", http.StatusUnauthorized)
			return
		}
		fmt.Println(event.EventType) // ignore an event whose EventID was seen
	}
	answer := httptest.NewRecorder()
	handler(answer, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"eventType": "job.completed"}`)))
	fmt.Println(answer.Code)
	// Output: 401
}

func ExampleWebhooks_Create() {
	c, stop := server(map[string]string{"POST /v1/webhooks": `{"id": "wh_1", "secret": "whsec_c2VjcmV0"}`})
	defer stop()
	webhook, err := c.Webhooks.Create(context.Background(), &api.WebhookSettings{URL: "https://example.org/hook", EventTypes: []string{"job.*"}})
	fmt.Println(webhook.ID, err)
	// Output: wh_1 <nil>
}

func ExampleArtifacts_CreateBytes() {
	c, stop := server(map[string]string{"POST /v1/artifacts": `{"id": "a1", "kind": "image"}`})
	defer stop()
	artifact, err := c.Artifacts.CreateBytes(context.Background(), []byte("\x89PNG"), client.Upload{Kind: "image", MediaType: "image/png"})
	fmt.Println(artifact.ID, err)
	// Output: a1 <nil>
}

func ExampleError() {
	c, stop := server(nil)
	defer stop()
	_, err := c.Runs.Get(context.Background(), "job_1")
	fmt.Println(errors.Is(err, client.ErrNotFound), client.HasCode(err, api.CodeNotFound))
	fmt.Println(err)
	// Output:
	// true true
	// 404 NOT_FOUND: there is no such thing
}

func ExampleInference_Stream() {
	c, stop := server(map[string]string{"GET /v1/tasks/inf_1/stream": "id: 1\nevent: token\ndata: {\"text\": \"Hi\"}\n\nid: 2\nevent: end\ndata: {}\n\n"})
	defer stop()
	for event, err := range c.Inference.Stream(context.Background(), "inf_1", "") {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(event.Name, string(event.Data))
	}
	// Output:
	// token {"text": "Hi"}
	// end {}
}

func ExampleOpenAI_StreamChat() {
	c, stop := server(map[string]string{"POST /v1/chat/completions": "data: {\"choices\": []}\n\ndata: [DONE]\n\n"})
	defer stop()
	request := api.ChatRequest{Model: "tiny", Messages: []api.ChatMessage{{Role: "user", Content: "Say hi."}}}
	for chunk, err := range c.OpenAI.StreamChat(context.Background(), request) {
		fmt.Println(string(chunk), err)
	}
	// Output: {"choices": []} <nil>
}

func ExamplePools_Drain() {
	c, stop := server(map[string]string{"POST /v1/pools/gpu/drain": `{"id": "gpu", "draining": true}`})
	defer stop()
	pool, err := c.Pools.Drain(context.Background(), "gpu", nil)
	fmt.Println(pool.ID, err)
	// Output: gpu <nil>
}
