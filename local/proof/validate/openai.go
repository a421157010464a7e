package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/sortie-dev/sortie/local/proof/engines/servers"
	"github.com/sortie-dev/sortie/local/proof/engines/tinymodel"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// openAI calls the OpenAI API with the official clients for Python and JavaScript, and reads
// the stream of a task with npm's EventSource.
func openAI(ctx context.Context, k *kit) error {
	s, err := k.startWith(ctx, "openai", []string{"--engine", "mock"})
	if err != nil {
		return err
	}
	return k.playOpenAI(ctx, s, "mock")
}

// openAILlama is like openAI with a llama-server as the engine. It installs the llama-server.
func openAILlama(ctx context.Context, k *kit) error {
	return k.withEngine(ctx, platform.EngineLlamaCpp, servers.Options{Shape: tinymodel.Slow}, func(s *server, model string) error {
		return k.playOpenAI(ctx, s, model)
	})
}

// openAIVLLM is like openAI with a vLLM as the engine.
func openAIVLLM(ctx context.Context, k *kit) error {
	return k.withEngine(ctx, platform.EngineVLLM, servers.Options{Shape: tinymodel.Slow}, func(s *server, model string) error {
		return k.playOpenAI(ctx, s, model)
	})
}

// withEngine calls play with a server in front of a real inference server, which it installs.
func (k *kit) withEngine(ctx context.Context, kind platform.EngineKind, o servers.Options, play func(s *server, model string) error) error {
	installed, err := servers.Install(ctx, kind, k.environ, func(format string, args ...any) { fmt.Printf(format+"\n", args...) })
	if err != nil {
		return err
	}
	if o.Folder, err = os.MkdirTemp(k.work, string(kind)); err != nil {
		return fmt.Errorf("cannot create a folder: %w", err)
	}
	engine, err := installed.Start(ctx, o)
	if err != nil {
		return err
	}
	defer engine.Kill()
	s, err := k.startWith(ctx, filepath.Base(o.Folder)+"-server", []string{"--engine", string(kind) + "=" + engine.URL})
	if err != nil {
		return err
	}
	return play(s, engine.Model)
}

// playOpenAI runs the clients with a model of a server.
func (k *kit) playOpenAI(ctx context.Context, s *server, model string) error {
	limited, cancel := context.WithTimeout(ctx, clientLimit)
	defer cancel()
	for _, each := range k.openAIClients("openai_client") {
		if err := k.exec(limited, "play the OpenAI API in "+each.language, call{args: append(each.args, s.URL, token, model), env: k.nodePath()}); err != nil {
			return fmt.Errorf("the client for %s: %w", each.language, err)
		}
	}
	for _, each := range k.openAIClients("openai_resume") {
		if err := k.resumeResponse(limited, s, append(each.args, s.URL, token, model)); err != nil {
			return fmt.Errorf("the client for %s: %w", each.language, err)
		}
	}
	return nil
}

// openAIClient is a program that uses an official client.
type openAIClient struct {
	language string
	args     []string
}

// openAIClients returns the programs with this name, one for each client.
func (k *kit) openAIClients(name string) []openAIClient {
	path := k.config("testdata/clients/" + name)
	return []openAIClient{{"Python", []string{k.python("python"), path + ".py"}}, {"JavaScript", []string{k.tools.Node, path + ".cjs"}}}
}

// resumeResponse kills the server while a client reads a background response. The client must
// get each event once, up to the last one. The response has failed then, because its answer
// cannot be continued.
func (k *kit) resumeResponse(ctx context.Context, s *server, args []string) error {
	output, err := k.spawn(ctx, args)
	if err != nil {
		return err
	}
	expect := func(want string) error {
		line, err := output.ReadString('\n')
		if err != nil {
			return fmt.Errorf("got %q from the client, want %q: %w", line, want, err)
		}
		if line != want+"\n" {
			return fmt.Errorf("got %q from the client, want %q", line, want)
		}
		return nil
	}
	if err := expect("begun"); err != nil {
		return err
	}
	if err := k.restart(ctx, s, syscall.SIGKILL); err != nil {
		return err
	}
	return expect("resumed response.failed")
}
