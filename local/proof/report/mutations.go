package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/proof/report/figure"
	"github.com/sortie-dev/sortie/local/proof/report/mutant"
)

// mutated are the packages in which mistakes are made: those that decide.
var mutated = []string{
	"shared/domain/access", "shared/domain/budget", "shared/domain/fan", "shared/domain/fleet", "shared/domain/inference", "shared/domain/job",
	"shared/domain/label", "shared/domain/platform", "shared/domain/routing", "shared/domain/run", "shared/domain/sensor", "shared/domain/webhook",
	"shared/app/balance", "shared/app/capacity", "shared/app/delivery", "shared/app/token", "shared/base/retry", "shared/wire/openai", "events",
}

// mutatedFor limits one execution of the tests of a package; a mutant that needs longer hangs.
const mutatedFor = 3 * time.Minute

// measureMutations makes MUTANTS mistakes in each package, drawn with a fixed seed, and counts
// those at which the tests of the package fail. Other tests, such as the simulation, are not
// run: the score is that of the package's own tests.
func measureMutations(ctx context.Context, p *figure.Part) error {
	each := sized("MUTANTS", 40)
	p.Command += " MUTANTS=" + strconv.Itoa(each)
	table := "| package | mutants | caught | score |\n|---|---:|---:|---:|\n"
	all, caught := 0, 0
	var survivors []string
	for _, folder := range mutated {
		tried, found, alive, err := mutatePackage(ctx, folder, each)
		if err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
		score := 100 * float64(found) / float64(max(1, tried))
		fmt.Fprintf(os.Stderr, "  %s: %d of %d\n", folder, found, tried)
		table += fmt.Sprintf("| `%s` | %d | %d | %.0f %% |\n", folder, tried, found, score)
		all, caught = all+tried, caught+found
		survivors = append(survivors, alive...)
	}
	p.Count("mutants that compile", all, figure.Neither)
	p.Add(figure.Figure{Name: "caught by the tests of their own package", Value: 100 * float64(caught) / float64(max(1, all)), Unit: "%", Better: figure.More, Noise: 0.02})
	named, err := os.ReadFile("local/proof/simulation/mutations.go")
	if err != nil {
		return fmt.Errorf("cannot count the mutations of the simulation: %w", err)
	}
	known, lost, _ := strings.Cut(string(named), "no known seed")
	p.Count("mutations by hand that a seed of the simulation catches", strings.Count(known, "\n//\t"), figure.More)
	p.Count("mutations by hand without a known seed now", strings.Count(lost, "\n//\t"), figure.Less)
	p.Tables = append(p.Tables, table)
	if len(survivors) > 0 {
		p.Note("Not caught by their own package, of which some change nothing that can be seen:")
		p.Note("- %s", strings.Join(survivors, "\n- "))
	}
	return nil
}

// mutatePackage tries mutants of a package. It returns how many compiled, how many were caught,
// and the others.
func mutatePackage(ctx context.Context, folder string, most int) (tried, caught int, alive []string, err error) {
	if _, err := output(ctx, nil, "go", "test", "-count=1", "-timeout", mutatedFor.String(), "./"+folder); err != nil {
		return 0, 0, nil, err // without a mutant
	}
	mutants, err := mutantsOf(folder)
	if err != nil {
		return 0, 0, nil, err
	}
	random := rand.New(rand.NewPCG(1, uint64(len(folder)))) //nolint:gosec // the same mutants each time
	random.Shuffle(len(mutants), func(i, j int) { mutants[i], mutants[j] = mutants[j], mutants[i] })
	for _, m := range mutants {
		if tried == most {
			break
		}
		noticed, err := tryMutant(ctx, folder, m)
		switch {
		case errors.Is(err, errNotGo):
			continue
		case err != nil:
			return 0, 0, nil, err
		case noticed:
			caught++
		default:
			alive = append(alive, m.String())
		}
		tried++
	}
	return tried, caught, alive, nil
}

func mutantsOf(folder string) ([]mutant.Mutant, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("cannot list %s: %w", folder, err)
	}
	var all []mutant.Mutant
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read a file: %w", err)
		}
		some, err := mutant.Of(file, source)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// errNotGo is returned for a mutant that does not compile.
var errNotGo = errors.New("the mutant does not compile")

// tryMutant runs the tests of the package with the mutant in place of its file, and reports
// whether they fail.
func tryMutant(ctx context.Context, folder string, m mutant.Mutant) (bool, error) {
	dir, err := os.MkdirTemp("", "sortie-mutant-")
	if err != nil {
		return false, fmt.Errorf("cannot keep a mutant: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	original, err := filepath.Abs(m.File)
	if err != nil {
		return false, fmt.Errorf("cannot find %s: %w", m.File, err)
	}
	replacement, overlay := filepath.Join(dir, "mutant.go"), filepath.Join(dir, "overlay.json")
	document, err := json.Marshal(map[string]any{"Replace": map[string]string{original: replacement}})
	if err := errors.Join(err, os.WriteFile(replacement, m.Source, 0o600), os.WriteFile(overlay, document, 0o600)); err != nil {
		return false, fmt.Errorf("cannot keep a mutant: %w", err)
	}
	text, err := output(ctx, nil, "go", "test", "-count=1", "-failfast", "-timeout", mutatedFor.String(), "-overlay", overlay, "./"+folder)
	exit := new(exec.ExitError)
	switch {
	case err == nil:
		return false, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	case !errors.As(err, &exit):
		return false, err
	case strings.Contains(text, "[build failed]") || strings.Contains(text, "[setup failed]"):
		return false, errNotGo
	}
	return true, nil
}
