package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/engines/servers"
	"github.com/sortie-dev/sortie/local/proof/engines/tinymodel"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// parts are what each program of a library must report.
var parts = []string{"text", "stream", "tools", "structured output", "reasoning", "cancel"}

// members are members of requests for an engine: those that make its model call a tool, answer with
// reasoning, follow a schema, and end a JSON object. The models of real engines are random.
type members struct {
	Tools     map[string]any `json:"tools"`
	Reasoning map[string]any `json:"reasoning"`
	Schema    map[string]any `json:"schema"`
	Object    map[string]any `json:"object"`
}

// ofMock are the members for the mock engine. Its prompt says what to answer.
var ofMock = members{Tools: map[string]any{}, Reasoning: map[string]any{"prompt": "cause-reasoning"}, Schema: map[string]any{}, Object: map[string]any{}}

// ofLlama are the members for a llama-server that reads calls.
var ofLlama = members{
	Tools:     map[string]any{"logit_bias": map[string]int{servers.TokenTilde: 90, servers.TokenEnd: 100}},
	Reasoning: map[string]any{"grammar": `root ::= "<think>" [a-z]{4,9} "</think>" [a-z]{3,8}`},
	Schema:    map[string]any{"chat_template_kwargs": map[string]bool{"enable_thinking": false}},
	Object:    map[string]any{"logit_bias": map[string]int{servers.TokenBrace: 90}, "chat_template_kwargs": map[string]bool{"enable_thinking": false}},
}

// library is a client library with the program that plays it.
type library struct {
	name, program string
	// quick libraries are also played in quick checks.
	quick bool
}

var libraries = []library{
	{name: "LangChain", program: "langchain.py"},
	{name: "LlamaIndex", program: "llamaindex.py"},
	{name: "litellm", program: "litellm_client.py"},
	{name: "instructor", program: "instructor_client.py"},
	{name: "AI SDK", program: "ai.mjs", quick: true},
}

// clientLibraries calls the OpenAI API with the libraries that programs use instead of an official
// client. The quick form plays some of them.
func clientLibraries(ctx context.Context, k *kit) error {
	s, err := k.startWith(ctx, "libraries", []string{"--engine", "mock"})
	if err != nil {
		return err
	}
	return k.playLibraries(ctx, s, "mock", ofMock)
}

// librariesLlama is like clientLibraries with a llama-server as the engine.
func librariesLlama(ctx context.Context, k *kit) error {
	return k.withEngine(ctx, platform.EngineLlamaCpp, servers.Options{Calls: true, Shape: tinymodel.Slow}, func(s *server, model string) error {
		return k.playLibraries(ctx, s, model, ofLlama)
	})
}

// ofVLLM are the members for a vLLM that reads calls.
var ofVLLM = members{
	Tools:     map[string]any{},
	Reasoning: map[string]any{"prompt": "cause-reasoning", "structured_outputs": map[string]string{"regex": "Here is my thought process:[a-z]{4,9}Here is my response:[a-z]{3,8}"}},
	Schema:    map[string]any{},
	Object:    map[string]any{"logit_bias": map[string]int{servers.TokenBrace: 90}},
}

// librariesVLLM is like clientLibraries with a vLLM as the engine.
func librariesVLLM(ctx context.Context, k *kit) error {
	return k.withEngine(ctx, platform.EngineVLLM, servers.Options{Calls: true, Shape: tinymodel.Slow}, func(s *server, model string) error {
		return k.playLibraries(ctx, s, model, ofVLLM)
	})
}

// playLibraries runs the program of each library.
func (k *kit) playLibraries(ctx context.Context, s *server, model string, m members) error {
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("cannot encode the members: %w", err)
	}
	var failed []error
	for _, each := range libraries {
		if !k.quick || each.quick {
			if err := k.playLibrary(ctx, each, s.URL, token, model, string(text)); err != nil {
				failed = append(failed, fmt.Errorf("the library %s: %w", each.name, err))
			}
		}
	}
	return errors.Join(failed...)
}

// playLibrary installs a library and runs its program. The program must report each part.
func (k *kit) playLibrary(ctx context.Context, l library, args ...string) error {
	command, environ, err := k.libraryCommand(ctx, l)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, clientLimit)
	defer cancel()
	output, err := k.output(limited, "play the library "+l.name, call{args: slices.Concat(command, args), env: environ})
	if err != nil {
		return err
	}
	for _, part := range parts {
		if !slices.Contains(strings.Split(output, "\n"), part) {
			return fmt.Errorf("got %q, want the part %s", output, part)
		}
	}
	return nil
}

// libraryCommand installs a library and returns the command that plays it.
func (k *kit) libraryCommand(ctx context.Context, l library) (command, environ []string, err error) {
	program := k.config("testdata/libraries/" + l.program)
	if strings.HasSuffix(program, ".mjs") {
		dir, err := k.part(ctx, "libraries-node", "", []string{"libraries/package.json", "libraries/package-lock.json"}, func(dir string) error {
			return k.exec(ctx, "install the Node libraries", call{dir: dir, args: []string{k.tools.NPM, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"}})
		})
		return []string{k.tools.Node, program}, []string{"LIBRARIES=" + dir}, err
	}
	dir, err := k.part(ctx, "libraries-python", "", []string{"libraries/requirements.lock"}, func(dir string) error {
		return errors.Join(
			k.exec(ctx, "create a Python environment", call{args: []string{k.tools.Python, "-m", "venv", filepath.Join(dir, "python")}}),
			k.exec(ctx, "install the Python libraries", call{dir: dir, args: []string{
				filepath.Join(dir, "python", "bin", "pip"), "install", "--disable-pip-version-check", "--no-input", "--quiet", "--no-deps", "--require-hashes",
				"--requirement", "requirements.lock",
			}}),
		)
	})
	return []string{filepath.Join(dir, "python", "bin", "python"), program}, []string{"PYTHONDONTWRITEBYTECODE=1"}, err
}
