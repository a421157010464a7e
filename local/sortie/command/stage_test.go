package command_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// cloud starts a CloudFormation with one stack, whose template is deployed. regions gets the
// regions of the calls.
func cloud(t *testing.T, deployed string) (regions *[]string, reach func(context.Context) (aws.Config, error)) {
	t.Helper()
	regions = &[]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*regions = append(*regions, strings.Split(r.Header.Get("Authorization"), "/")[2])
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		action := r.Form.Get("Action")
		result := "<Stacks><member><StackStatus>UPDATE_COMPLETE</StackStatus></member></Stacks>"
		if action == "GetTemplate" {
			result = "<TemplateBody><![CDATA[" + deployed + "]]></TemplateBody>"
		}
		if r.Form.Get("StackName") != "sortie-prod" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte("<ErrorResponse><Error><Code>ValidationError</Code></Error></ErrorResponse>"))
			return
		}
		_, _ = w.Write([]byte("<" + action + "Response><" + action + "Result>" + result + "</" + action + "Result></" + action + "Response>"))
	}))
	t.Cleanup(server.Close)
	return regions, func(context.Context) (aws.Config, error) {
		return aws.Config{
			Region: "us-east-1", BaseEndpoint: &server.URL, RetryMaxAttempts: 1,
			Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
		}, nil
	}
}

// TestSecretsAreInTheRegionOfTheStage runs all commands that read or write secrets of a stage.
func TestSecretsAreInTheRegionOfTheStage(t *testing.T) {
	t.Parallel()
	settings := filepath.Join(t.TempDir(), "cdk.json")
	if err := os.WriteFile(settings, []byte(`{"context": {"stages": {"prod": {"region": "eu-west-1"}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, document := range map[string]string{
		"secrets put fly": `{"token": "FlyV1 a"}`, "secrets put report-key --tenant acme": "s3cret", "secrets list": "", "secrets delete report-key": "",
		"tokens add ci": "", "tokens list": "", "tokens revoke ci": "",
	} {
		regions, reach := cloud(t, "")
		got := sortieOn(t.Context(), reach, nil, document, append(strings.Fields(args), "--stage", "prod", "--settings", settings)...)
		if len(*regions) == 0 || slices.ContainsFunc(*regions, func(region string) bool { return region != "eu-west-1" }) {
			t.Errorf("%s: got calls in the regions %v, want that of the stage; %+v", args, *regions, got)
		}
	}
}

// synthesised writes an assembly with the template made and returns its folder.
func synthesised(t *testing.T, made string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"manifest.json": `{"artifacts":{"sortie-prod":{"environment":"aws://1/eu-west-1","properties":{"templateFile":"t.json"}}}}`, "t.json": made,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestStageCheckRefusesARemoval(t *testing.T) {
	t.Parallel()
	const domain = `{"Resources":{"Domain":{"Type":"AWS::ApiGateway::DomainName","Properties":{"DomainName":"x.org"}}}}`
	regions, reach := cloud(t, domain)
	lost, same := synthesised(t, `{"Resources":{}}`), synthesised(t, domain)
	for _, row := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"nothing is lost", []string{"--assembly", same}, 0, ""},
		{"the domain is lost", []string{"--assembly", lost}, 1, "ALLOW_REMOVAL=domain"},
		{"another word", []string{"--assembly", lost, "--allow-removal", "table"}, 1, "Domain is removed"},
		{"its word", []string{"--assembly", lost, "--allow-removal", "table,domain"}, 0, "Permitted: domain"},
		{"an unknown word", []string{"--assembly", lost, "--allow-removal", "domian"}, 2, "did you mean domain?"},
		{"no assembly", []string{"--assembly", t.TempDir()}, 1, "make synth"},
	} {
		got := sortieOn(t.Context(), reach, nil, "", append([]string{"stage", "check", "--stage", "prod"}, row.args...)...)
		if got.code != row.code || !strings.Contains(got.stderr, row.says) {
			t.Errorf("%s: got %+v, want code %d and %q", row.name, got, row.code, row.says)
		}
	}
	for _, region := range *regions {
		if region != "eu-west-1" {
			t.Errorf("got a call in %s, want the assembly's region", region)
		}
	}
}

func TestStageCommandsNeedAStage(t *testing.T) {
	t.Parallel()
	_, reach := cloud(t, "{}")
	for _, command := range []string{"drain", "open", "claim", "empty", "restore"} {
		args := []string{"stage", command}
		if command == "restore" {
			args = append(args, "--to", "other")
		}
		for name, want := range map[string]string{"": "missing --stage", "Prod!": "malformed name", "test": "not deployed"} {
			if name != "" {
				name = "--stage=" + name
			}
			got := sortieOn(t.Context(), reach, nil, "", strings.Fields(strings.Join(args, " ")+" "+name)...)
			if got.code != 2 || !strings.Contains(got.stderr, want) {
				t.Errorf("%v %s: got %+v, want code 2 and %q", args, name, got, want)
			}
		}
	}
	for _, flags := range []string{"--to x", "--to other --at yesterday"} {
		got := sortieOn(t.Context(), reach, nil, "", strings.Fields("stage restore --stage prod "+flags)...)
		if got.code != 2 || !strings.Contains(got.stderr, "malformed") {
			t.Errorf("%s: got %+v, want code 2", flags, got)
		}
	}
}
