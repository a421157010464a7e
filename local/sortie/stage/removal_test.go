package stage_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/sortie/stage"
	"github.com/sortie-dev/sortie/local/sortie/template"
)

// resources returns a template with the resources, given as JSON.
func resources(t *testing.T, list string) template.Template {
	t.Helper()
	made, err := template.Parse(`{"Resources":{` + list + `}}`)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestRemovals(t *testing.T) {
	t.Parallel()
	function := func(variable, value string) string {
		return `"Launch":{"Type":"AWS::Lambda::Function","Properties":{"Environment":{"Variables":{"` + variable + `":` + value + `}}}}`
	}
	for _, row := range []struct{ name, before, after, word string }{
		{"the same", `"T":{"Type":"AWS::DynamoDB::Table"}`, `"T":{"Type":"AWS::DynamoDB::Table"}`, ""},
		{"something new", ``, `"D":{"Type":"AWS::ApiGateway::DomainName"}`, ""},
		{"a function", `"F":{"Type":"AWS::Lambda::Function"}`, ``, ""},
		{"another address of the mail", `"M":{"Type":"AWS::SNS::Subscription","Properties":{"Endpoint":"a@x.org"}}`, `"M":{"Type":"AWS::SNS::Subscription","Properties":{"Endpoint":"b@x.org"}}`, "alarmEmail"},
		{"another type with the id", `"T":{"Type":"AWS::DynamoDB::Table"}`, `"T":{"Type":"AWS::S3::Bucket"}`, "table"},
		{"another key schema", `"T":{"Type":"AWS::DynamoDB::Table","Properties":{"KeySchema":[1]}}`, `"T":{"Type":"AWS::DynamoDB::Table","Properties":{"KeySchema":[2]}}`, "table"},
		{"another index", `"T":{"Type":"AWS::DynamoDB::Table","Properties":{"GlobalSecondaryIndexes":[1]}}`, `"T":{"Type":"AWS::DynamoDB::Table","Properties":{"GlobalSecondaryIndexes":[2]}}`, ""},
		{"retained no more", `"T":{"Type":"AWS::DynamoDB::Table","DeletionPolicy":"Retain"}`, `"T":{"Type":"AWS::DynamoDB::Table","DeletionPolicy":"Delete"}`, "retain"},
		{"retained no more, except on create", `"T":{"Type":"AWS::DynamoDB::Table","DeletionPolicy":"RetainExceptOnCreate"}`, `"T":{"Type":"AWS::DynamoDB::Table","DeletionPolicy":"Delete"}`, "retain"},
		{"shorter logs", `"L":{"Type":"AWS::Logs::LogGroup","Properties":{"RetentionInDays":30}}`, `"L":{"Type":"AWS::Logs::LogGroup","Properties":{"RetentionInDays":7}}`, "logs"},
		{"longer logs", `"L":{"Type":"AWS::Logs::LogGroup","Properties":{"RetentionInDays":7}}`, `"L":{"Type":"AWS::Logs::LogGroup","Properties":{"RetentionInDays":30}}`, ""},
		{"versions", `"B":{"Type":"AWS::S3::Bucket","Properties":{"VersioningConfiguration":{"Status":"Enabled"}}}`, `"B":{"Type":"AWS::S3::Bucket"}`, "retain"},
		{"one of the apps", function("SORTIE_FLY_APPS", `"a,b"`), function("SORTIE_FLY_APPS", `"b,c"`), "flyApps"},
		{"one more app", function("SORTIE_FLY_APPS", `"a"`), function("SORTIE_FLY_APPS", `"a,b"`), ""},
		{"a restored table", function("SORTIE_TABLE", `"restored"`), function("SORTIE_TABLE", `{"Ref":"Table"}`), "tableStream"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			found := stage.Removals(resources(t, row.before), resources(t, row.after))
			if row.word == "" && len(found) > 0 || row.word != "" && (len(found) != 1 || found[0].Word != row.word) {
				t.Fatalf("got %v, want %q", found, row.word)
			}
			for _, r := range found {
				if err := stage.Check(found, nil); err == nil || !strings.Contains(err.Error(), "ALLOW_REMOVAL="+row.word) || !strings.Contains(err.Error(), r.What) {
					t.Errorf("got %v, want the word", err)
				}
				if !slices.Contains(stage.Words(), r.Word) {
					t.Errorf("got word %q, want one of %v", r.Word, stage.Words())
				}
			}
			if err := stage.Check(found, []string{row.word}); err != nil {
				t.Errorf("with the word: got %v", err)
			}
		})
	}
}

func TestAssemblyHasTheRegion(t *testing.T) {
	t.Parallel()
	for environment, region := range map[string]string{"aws://unknown-account/unknown-region": "", "aws://111122223333/eu-west-1": "eu-west-1"} {
		dir := t.TempDir()
		manifest := `{"artifacts":{"sortie-prod":{"environment":"` + environment + `","properties":{"templateFile":"t.json"}}}}`
		for name, text := range map[string]string{"manifest.json": manifest, "t.json": `{"Resources":{"A":{"Type":"AWS::S3::Bucket"}}}`} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		a, err := stage.ReadAssembly(dir, "prod")
		if err != nil || a.Region != region || len(a.Template.Resources) != 1 {
			t.Errorf("%s: got %+v, %v, want region %q", environment, a, err, region)
		}
		if _, err := stage.ReadAssembly(dir, "dev"); err == nil {
			t.Error("another stage: got no error")
		}
	}
}
