package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/sortie-dev/sortie/local/samples"
)

// document is the OpenAPI document.
const document = "shared/wire/contract/openapi.yaml"

// The numbers of examples that schemathesis generates per operation.
const (
	examples      = 200
	quickExamples = 8
)

func redocly(ctx context.Context, k *kit) error {
	return k.exec(ctx, "lint the document", call{args: []string{
		k.npm("redocly"), "lint", "--max-problems=100", "--lint-config=error", "--format=codeframe", "--config", k.config("redocly.yaml"), document,
	}})
}

func spectral(ctx context.Context, k *kit) error {
	// Spectral finds its rule set "spectral:oas" in the folder of its configuration.
	return k.exec(ctx, "lint the document", call{args: []string{
		k.npm("spectral"), "lint", "--fail-severity=hint", "--ruleset", k.config("spectral.yaml"), document,
	}})
}

// clientRequests generates requests, and sequences of requests, with a client's token. The runs
// that they start are executed.
func clientRequests(ctx context.Context, k *kit) error {
	s, err := k.start(ctx, "client", "")
	if err != nil {
		return err
	}
	return k.schemathesis(ctx, s, token, "any", "--exclude-tag=workers", "--exclude-operation-id=callback")
}

// inferenceOperations create inference tasks and read their answers.
var inferenceOperations = []string{
	"createTask", "task", "streamTask", "cancelTask", "session", "deleteSession", "capabilities",
	"createChatCompletion", "createCompletion", "createEmbedding", "createRerank", "createResponse", "getResponse", "cancelResponse", "deleteResponse",
	"listServedModels", "getServedModel",
}

// inferenceRequests generates requests for inference tasks. Valid requests use the model of a
// mock engine, so that they are answered.
func inferenceRequests(ctx context.Context, k *kit) error {
	s, err := k.startWith(ctx, "inference", []string{"--engine", "mock"})
	if err != nil {
		return err
	}
	var include []string
	for _, operation := range inferenceOperations {
		include = append(include, "--include-operation-id="+operation)
	}
	return k.schemathesis(ctx, s, token, "any", include...)
}

// workerRequests generates requests with the tokens of workers. Each operation that ends an
// attempt gets its own attempt.
func workerRequests(ctx context.Context, k *kit) error {
	worker, err := k.idleWorker()
	if err != nil {
		return err
	}
	s, err := k.start(ctx, "worker", worker)
	if err != nil {
		return err
	}
	for _, operations := range [][]string{{"started", "heartbeat"}, {"completed"}, {"callback"}} {
		a, err := k.submit(ctx, s, samples.SampleRoot)
		if err != nil {
			return err
		}
		bearer := a.workerToken
		include := []string{"--phases=examples,coverage,fuzzing"} // the operations have no links
		for _, operation := range operations {
			include = append(include, "--include-operation-id="+operation)
			if operation == "callback" {
				bearer = a.callbackToken
			}
		}
		if err := k.schemathesis(ctx, s, bearer, a.taskID, include...); err != nil {
			return err
		}
	}
	return nil
}

// schemathesis generates requests from the OpenAPI document that the server serves.
func (k *kit) schemathesis(ctx context.Context, s *server, bearer, taskID string, filter ...string) error {
	n, config := examples, "schemathesis.toml"
	if k.quick {
		n = quickExamples
	}
	if taskID != "any" {
		config = "schemathesis-worker.toml"
	}
	args := []string{
		k.python("schemathesis"), "--config-file", k.config(config), "run", s.URL + "/openapi.json",
		"--header=Authorization: Bearer " + bearer, "--max-examples", strconv.Itoa(n),
	}
	return k.exec(ctx, "send the generated requests", call{args: append(args, filter...), dir: s.dir, env: []string{
		"TASK_ID=" + taskID, "SERVED_MODEL=" + s.model(), "SCHEMATHESIS_HOOKS=" + k.config("exceptions.py"),
	}})
}

// goClient generates a Go client, compiles it, and exports an entity with it.
func goClient(ctx context.Context, k *kit) error {
	s, err := k.start(ctx, "go", "")
	if err != nil {
		return err
	}
	dir := filepath.Join(k.work, "goclient")
	if err := os.CopyFS(dir, os.DirFS(k.config("testdata/goclient"))); err != nil {
		return fmt.Errorf("cannot copy the client's program: %w", err)
	}
	err = k.exec(ctx, "generate the client", call{args: []string{
		k.tools.Go, "run", oapiCodegen, "-package", "main", "-generate", "client,models,skip-prune", "-o", filepath.Join(dir, "client.gen.go"), document,
	}})
	if err != nil {
		return err
	}
	if err := k.exec(ctx, "compile the client", call{args: []string{k.tools.Go, "vet", "."}, dir: dir}); err != nil {
		return err
	}
	return k.exec(ctx, "export with the client", call{args: []string{k.tools.Go, "run", ".", samples.SampleRoot}, dir: dir, env: s.env()})
}

// pythonClient generates a Python client, imports all of its modules, and exports an entity
// with it.
func pythonClient(ctx context.Context, k *kit) error {
	s, err := k.start(ctx, "python", "")
	if err != nil {
		return err
	}
	dir := filepath.Join(k.work, "pyclient")
	err = k.exec(ctx, "generate the client", call{args: []string{
		k.tools.Java, "-jar", k.jar(), "generate", "-g", "python", "-i", document, "-o", dir,
	}})
	if err != nil {
		return err
	}
	return k.exec(ctx, "export with the client", call{
		args: []string{k.python("python"), "-W", "error", k.config("testdata/pyclient/export.py"), samples.SampleRoot},
		env:  append(s.env(), "PYTHONPATH="+dir),
	})
}
