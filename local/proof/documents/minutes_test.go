package documents_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/doctortest"
)

// The page for first users of a stage, and its maximum number of lines.
const (
	minutesFile    = "infra/README.md"
	minutesHeading = "## Ten minutes on AWS\n"
	minutesLines   = 90
)

// minutes returns the text of the page.
func minutes(t *testing.T) (root, page string) {
	t.Helper()
	root, _ = repository(t)
	text, err := os.ReadFile(filepath.Join(root, minutesFile))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), minutesHeading)
	page, _, ended := strings.Cut(rest, "\n## ")
	if !found || !ended {
		t.Fatalf("%s: got no section %q", minutesFile, minutesHeading)
	}
	return root, page
}

// TestMinutesAreOnePage checks the length of the page and that it is the first one.
func TestMinutesAreOnePage(t *testing.T) {
	t.Parallel()
	root, page := minutes(t)
	if lines := strings.Count(page, "\n"); lines > minutesLines {
		t.Errorf("got %d lines, want at most %d", lines, minutesLines)
	}
	text, err := os.ReadFile(filepath.Join(root, minutesFile))
	if before, _, _ := strings.Cut(string(text), minutesHeading); err != nil || strings.Contains(before, "\n## ") {
		t.Errorf("got sections before the page: %v", err)
	}
}

// TestMinutesHaveCommandsThatExist checks each command of the page. Commands of sortie must be
// in the command tree, targets of make in the Makefile, and other commands in the recorded
// commands.
func TestMinutesHaveCommandsThatExist(t *testing.T) {
	t.Parallel()
	root, page := minutes(t)
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, b := range parse(minutesFile, page).blocks {
		if b.language != "sh" {
			continue
		}
		for _, words := range commands(b.text) {
			checked++
			switch words[0] {
			case "export", "read":
				continue
			case "make":
				for _, word := range words[1:] {
					if name, _, variable := strings.Cut(word, "="); variable && !regexp.MustCompile(`(?m)^`+name+`\s*\??=`).Match(makefile) {
						t.Errorf("line %d: got the variable %s, want one of the Makefile", b.line, name)
					}
				}
			case "aws":
				checkAWS(t, words)
			}
			if err := doctortest.CheckCommand(words); err != nil {
				t.Errorf("line %d: %v", b.line, err)
			}
		}
	}
	if checked < 15 {
		t.Errorf("got %d commands, want the page's", checked)
	}
}

// checkAWS checks a command with the program aws, if that is installed and can check the
// command without an account.
func checkAWS(t *testing.T, words []string) {
	t.Helper()
	program, err := exec.LookPath("aws")
	if err != nil || words[1] == "configure" {
		return
	}
	cmd := exec.CommandContext(t.Context(), program, append(slices.Clone(words[1:]), "--generate-cli-skeleton", "output", "--region", "eu-west-1")...)
	cmd.Env = append(os.Environ(), "AWS_EC2_METADATA_DISABLED=true")
	text, _ := cmd.CombinedOutput() // it fails because of its example answer
	for _, refusal := range []string{"Unknown options", "Invalid choice", "are required", "usage:"} {
		if strings.Contains(string(text), refusal) {
			t.Errorf("%s: got %s", strings.Join(words, " "), text)
		}
	}
}

// TestMinutesNameWhatTheTemplateHas checks that the stack has the outputs in the page's
// commands.
func TestMinutesNameWhatTheTemplateHas(t *testing.T) {
	t.Parallel()
	root, page := minutes(t)
	summary, err := os.ReadFile(filepath.Join(root, "infra/stack/testdata/summary.txt"))
	if err != nil {
		t.Fatal(err)
	}
	outputs := regexp.MustCompile(`jq -r '\.\[\]\.(\w+)'`).FindAllStringSubmatch(page, -1)
	kinds := regexp.MustCompile(`secrets put (\w+)`).FindAllStringSubmatch(page, -1)
	if len(outputs) == 0 || len(kinds) == 0 {
		t.Fatal("got no output and no secret in the page")
	}
	for _, output := range outputs {
		if !strings.Contains(string(summary), "\n"+output[1]+" = ") {
			t.Errorf("got the output %s, want one of the template", output[1])
		}
	}
	for _, kind := range kinds {
		if !regexp.MustCompile(`(?m)^\w+Secret = sortie/\w+/` + kind[1] + `$`).Match(summary) {
			t.Errorf("got the secret %s, want one of the template", kind[1])
		}
	}
}

// TestPolicyIsWhatTheDoctorCalls compares the documented policy with the doctor's calls for
// stages that need every check.
func TestPolicyIsWhatTheDoctorCalls(t *testing.T) {
	t.Parallel()
	root, _ := repository(t)
	text, err := os.ReadFile(filepath.Join(root, minutesFile))
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, b := range parse(minutesFile, string(text)).blocks {
		var policy struct{ Statement []struct{ Action []string } }
		if b.language == "json" && json.Unmarshal([]byte(b.text), &policy) == nil && len(policy.Statement) == 1 {
			documented = policy.Statement[0].Action
		}
	}
	w := doctortest.New(t)
	w.Prod.Rate, w.Cloud.Concurrency, w.Cloud.Status = 9000, 10, "UPDATE_ROLLBACK_COMPLETE"
	if got := w.Run("prod"); got.Code != 1 {
		t.Fatalf("got %+v, want 1", got)
	}
	delete(w.Cloud.Called, "sts:GetCallerIdentity") // this call needs no permission
	if called := slices.Sorted(maps.Keys(w.Cloud.Called)); !slices.Equal(documented, called) {
		t.Errorf("got the policy %q, want %q", documented, called)
	}
}

// TestMinutesShowWhatTheDoctorPrints runs the doctor for a stage that follows the page.
func TestMinutesShowWhatTheDoctorPrints(t *testing.T) {
	t.Parallel()
	_, page := minutes(t)
	w := doctortest.New(t)
	w.Prod.Secrets, w.Prod.FlyApps = []string{"clients", "fly", "outputs"}, []string{"acme-runs"}
	w.Prod.Own, w.Prod.Endpoint = true, w.Outputs["endpoint"].(string)
	w.Prod.Domain, w.Prod.Certificate = "", ""
	w.Cloud.Status = "CREATE_COMPLETE"
	w.Cloud.Secrets["sortie/prod/clients"] = doctortest.Clients(doctortest.Client("me", doctortest.ClientToken))
	delete(w.Outputs, "endpoint")
	got := w.Run("prod")
	// Replace the names by those that AWS and Fly would give.
	want := regexp.MustCompile(`http://127\S+/prod`).ReplaceAllString(got.Stdout, "https://a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com/prod")
	want = strings.NewReplacer(
		"arke-exports-accepted", "sortie-prod-accepted2b3c-qrst", "arke-exports", "sortie-prod-uploads1a2b-mnop", "organisation local", "organisation personal",
	).Replace(want)
	for _, b := range parse(minutesFile, page).blocks {
		if command, ok := b.is("generated"); ok && command == "sortie stage doctor" {
			if b.text != want || got.Code != 0 {
				t.Errorf("got\n%s\nwant\n%s", b.text, want)
			}
			return
		}
	}
	t.Error("got no block with the lines of the doctor")
}
