package ead_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/samples/archive"
	"github.com/sortie-dev/sortie/local/samples/ead"
)

const inventory = `<ead><eadheader><eadid>mss1</eadid></eadheader><archdesc level="collection"><did><unittitle>Papers</unittitle>
<repository><corpname>The Library</corpname></repository></did>
<dsc><head>Inventory</head>
<c01 id="s2" level="series"><did><unittitle>Letters</unittitle></did><scopecontent><p>To friends.</p></scopecontent>
  <c02 level="file"><did><unittitle>Without an id</unittitle></did>
    <c03 id="i9" level="item"><did><unittitle><unitdate>1958</unitdate></unittitle><unitid>Box 1</unitid></did></c03></c02>
  <c02 id="i10" level="item"><did><unittitle>Second</unittitle></did></c02></c01>
<c id="s1" level="series"><did><unittitle>Diaries</unittitle></did></c>
<c id="s1"><did><unittitle>Repeated</unittitle></did></c>
</dsc></archdesc></ead>`

func TestComponentsAreUnits(t *testing.T) {
	t.Parallel()
	units, err := ead.ParseAll(strings.NewReader(inventory), "file")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, u := range units {
		above := ""
		for _, ref := range u.Above {
			above += "/" + ref.ID
		}
		got = append(got, fmt.Sprint(u.ID, " ", u.Level, " ", u.Title, " ", u.Institution, " ", above, " ", u.Component))
	}
	if diff := cmp.Diff([]string{
		"mss1 collection Papers The Library  0",
		"mss1#s2 series Letters The Library /mss1 1",
		"mss1#i9 item 1958 The Library /mss1/mss1#s2 2",
		"mss1#i10 item Second The Library /mss1/mss1#s2 3",
		"mss1#s1 series Diaries The Library /mss1 4",
	}, got); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
	if log := units[0].Log; log != "Repeated" {
		t.Errorf("got the log %q, want what is no unit", log)
	}
	if units[1].Abstract != "To friends." {
		t.Errorf("got the abstract %q", units[1].Abstract)
	}
	for _, u := range units {
		archive.Describe(u, archive.PI(u.ID), nil)
	}
}
