package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// template is the output of `make synth`.
const template = "infra/.cdk/out/sortie-dev.template.json"

// placeholder matches a substitution in the state machine.
var placeholder = regexp.MustCompile(`\$\{[A-Za-z]+\}`)

// stateMachine checks the state machine with an ARN in place of each function.
func stateMachine(ctx context.Context, k *kit) error {
	text, err := os.ReadFile("statemachines/run.asl.json")
	if err != nil {
		return fmt.Errorf("cannot read the state machine: %w", err)
	}
	filled := placeholder.ReplaceAll(text, []byte("arn:aws:lambda:us-east-1:000000000000:function:sortie"))
	name := filepath.Join(k.work, "run.asl.json")
	if err := os.WriteFile(name, filled, 0o600); err != nil {
		return fmt.Errorf("cannot write the state machine: %w", err)
	}
	return k.exec(ctx, "validate the state machine", call{args: []string{k.npm("asl-validator"), "--json-path", name}})
}

func cfnLint(ctx context.Context, k *kit) error {
	return k.exec(ctx, "lint the template", call{args: []string{
		k.python("cfn-lint"), "--config-file", k.config("cfnlint.yaml"), "--template", template,
	}})
}

func checkov(ctx context.Context, k *kit) error {
	return k.exec(ctx, "check the template", call{args: []string{
		k.python("checkov"), "--config-file", k.config("checkov.yaml"), "--file", template,
	}})
}
