package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/debian"
)

// series is the folder of the dashboard and the alert rules.
const series = "shared/domain/series"

// alertRules checks the alert rules with promtool, runs them on samples, and parses the queries
// of the dashboard. Without promtool in the PATH it fetches Debian's.
func alertRules(ctx context.Context, k *kit) error {
	tool, err := exec.LookPath("promtool")
	if err != nil {
		root, err := debian.Fetch(ctx, "prometheus-debian-12", []string{"prometheus"}, func(string) {}, nil)
		if err != nil {
			return missing{fmt.Errorf("promtool is not in the PATH, and it cannot be fetched: %w", err)}
		}
		tool = filepath.Join(root, "usr/bin/promtool")
	}
	queries := filepath.Join(k.work, "queries.yaml")
	if err := dashboardRules(queries); err != nil {
		return err
	}
	return errors.Join(
		k.exec(ctx, "check the alert rules", call{args: []string{tool, "check", "rules", series + "/alerts.yaml", queries}}),
		k.exec(ctx, "run the alert rules", call{args: []string{tool, "test", "rules", series + "/testdata/alerts.yaml"}}),
	)
}

// dashboardRules writes a file with one rule for each query of the dashboard.
func dashboardRules(file string) error {
	text, err := os.ReadFile(series + "/dashboard.json")
	if err != nil {
		return err
	}
	var dashboard struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		return err
	}
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []rule
	for _, p := range dashboard.Panels {
		for _, t := range p.Targets {
			rules = append(rules, rule{fmt.Sprintf("query:%d", len(rules)), strings.ReplaceAll(t.Expr, "$__rate_interval", "5m")})
		}
	}
	if text, err = json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}}); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}
