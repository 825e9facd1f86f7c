package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	sdk "github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/catalog"
	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/input"
)

type keyCmd struct {
	DatasetID      string   `name:"dataset-id" placeholder:"ID" help:"Identifier of the dataset in its STAC or DCAT record."`
	Version        string   `placeholder:"VERSION" help:"Semantic version of the dataset, as in v10.3.1."`
	SourceURI      string   `name:"source-uri" placeholder:"URI" help:"Absolute URI of the primary input."`
	QueryParameter []string `placeholder:"NAME" help:"Query parameter of the URI that distinguishes two sources; may be repeated."`
	Stac           string   `placeholder:"FILE" help:"The dataset of this record: a STAC Item or Collection, or a DCAT dataset in JSON-LD. --version is then for a record without one."`
	Asset          string   `placeholder:"NAME" help:"With --stac: the asset, or the distribution, that is the primary input; not needed if there is only one."`
	Base           string   `placeholder:"URI" help:"With --stac: address of the record, for relative addresses in it (default: its self link)."`
	Verify         string   `placeholder:"KEY" help:"Compare the key with this one; the exit code is 1 if they differ."`
	JSON           bool     `name:"json" help:"Print one JSON object for each dataset."`

	File []string `arg:"" optional:"" help:"Files of JSON lines, one dataset each, without --dataset-id; - or none is standard input."`
}

func (*keyCmd) Help() string {
	return `Computes the idempotency key of a dataset, and shows what was done to each component before it was hashed (KFM key specification v10.3.1):

	sha256:hex(SHA-256(dataset_id | version | source_uri))

The dataset is that of --dataset-id, --version and --source-uri, or else of each line of the input:

	{"dataset_id":"storms","version":"v10.3.1","source_uri":"https://host/storms.csv","query_parameters":["year"],"idempotency_key":"sha256:..."}

--stac takes all components from a record of the catalogue: the id, the version (or --version, because Items seldom have one), and the address and checksum of an asset.

A line with an idempotency_key is verified. The exit code is 1 if a key is not that of its dataset, 2 if a dataset has none or what should be a key is not one.

Examples:

	sqsfifo key --dataset-id storms --version 10.3.1 --source-uri HTTPS://Host:443/storms.csv
	sqsfifo key --stac item.json --asset red --version 2.0.0
	sqsfifo key --json datasets.jsonl | jq -r .idempotency_key`
}

// keyStep is one step in the normalisation of a component of the key, such as source_uri.
type keyStep struct {
	Component string `json:"component"`
	From      string `json:"from"`
	To        string `json:"to"`
	Step      string `json:"step"`
}

// keyLine is one line of --json output. Member names are stable.
type keyLine struct {
	DatasetID      string    `json:"dataset_id"`
	Version        string    `json:"version"`
	SourceURI      string    `json:"source_uri"`
	Checksum       string    `json:"artifact_checksum,omitempty"`
	Steps          []keyStep `json:"steps"`
	Joined         string    `json:"joined"`
	IdempotencyKey string    `json:"idempotency_key"`
	Verified       *bool     `json:"verified,omitempty"`
}

// datasetLine is a line of the input: a dataset, optionally with the key to verify.
type datasetLine struct {
	sdk.Dataset
	IdempotencyKey string `json:"idempotency_key"`
}

func (c *keyCmd) run(_ context.Context, std stdio) error {
	out := newLineWriter(std.out)
	if c.Stac != "" {
		d, err := c.record(std.in)
		if err != nil {
			return err
		}
		return c.printDataset(out, std.err, datasetLine{d, c.Verify})
	}
	if c.Asset != "" || c.Base != "" {
		return errors.New("--asset and --base need --stac")
	}
	if c.DatasetID != "" || c.Version != "" || c.SourceURI != "" {
		if len(c.File) > 0 {
			return errors.New("--dataset-id and files: give one dataset by flags, or several by lines")
		}
		return c.printDataset(out, std.err, datasetLine{sdk.Dataset{ID: c.DatasetID, Version: c.Version, SourceURI: c.SourceURI, QueryParameters: c.QueryParameter}, c.Verify})
	}
	if c.Verify != "" || c.QueryParameter != nil {
		return errors.New("--verify and --query-parameter need --dataset-id, --version and --source-uri; lines have members for them")
	}
	lines, err := input.Open(c.File, std.in, false)
	if err != nil {
		return err
	}
	first, differs := true, false
	for line, err := range lines.All() {
		if err != nil {
			return err
		}
		var d datasetLine
		decoder := json.NewDecoder(bytes.NewReader(line.Text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&d); err != nil {
			return line.Wrong(err)
		}
		if !first && !c.JSON {
			out.print(false, nil, "\n")
		}
		first = false
		switch err := c.printDataset(out, std.err, d); {
		case errors.Is(err, errFindings):
			differs = true
		case err != nil:
			return line.Wrong(err)
		}
	}
	return findingsIf(differs)
}

// record reads the dataset of --stac.
func (c *keyCmd) record(stdin io.Reader) (d sdk.Dataset, err error) {
	if len(c.File) > 0 || c.DatasetID != "" || c.SourceURI != "" {
		return d, errors.New("--stac with --dataset-id, --source-uri or lines: the record has the components; remove the others")
	}
	raw, err := os.ReadFile(c.Stac)
	if c.Stac == "-" {
		raw, err = io.ReadAll(stdin)
	}
	if err != nil {
		return d, err
	}
	d, err = catalog.Read(raw, catalog.Choice{Asset: c.Asset, Version: c.Version, Base: c.Base, QueryParameters: c.QueryParameter})
	var wrong *catalog.RecordError
	if errors.As(err, &wrong) {
		problem := strings.NewReplacer("Choice.Version (in the command: --version)", "--version", "Choice.Asset (in the command: --asset)", "--asset",
			"Choice.Base (in the command: --base)", "--base", "QueryParameters", "--query-parameter").Replace(wrong.Problem)
		return d, fmt.Errorf("%s: %s: %s", c.Stac, wrong.Member, problem)
	}
	return d, err
}

// printDataset prints the key of one dataset. If the input also has a key for the dataset,
// printDataset compares the two keys, and returns errFindings if they differ.
func (c *keyCmd) printDataset(out *lineWriter, notes io.Writer, d datasetLine) error {
	normal, err := d.Normalize()
	if err != nil {
		return plainKey(err)
	}
	key, err := d.Dataset.IdempotencyKey()
	if err != nil {
		return plainKey(err)
	}
	l := keyLine{
		DatasetID: normal.ID, Version: normal.Version, SourceURI: normal.SourceURI, Checksum: normal.ArtifactChecksum, Steps: keySteps(d.Dataset, normal),
		Joined: normal.ID + "|" + normal.Version + "|" + normal.SourceURI, IdempotencyKey: key,
	}
	differs := false
	if d.IdempotencyKey != "" {
		err := d.Verify(d.IdempotencyKey)
		if err != nil && !errors.Is(err, sdk.ErrKeyMismatch) {
			return plainKey(err)
		}
		differs = err != nil
		if l.Verified = new(!differs); differs {
			fmt.Fprintf(notes, "%s is not the key of this dataset, which is %s\n", d.IdempotencyKey, key)
		}
	}
	if c.JSON {
		out.write(l)
	} else if err := printKey(out.buffer, l); err != nil {
		return err
	}
	return cmp.Or(out.flush(), findingsIf(differs))
}

// plainKey shortens an error about a field of a dataset to the field and the broken rule.
// In the rule, it replaces the Go name QueryParameters by the JSON member and the flag.
func plainKey(err error) error {
	var key *sdk.InvalidError
	if errors.As(err, &key) {
		return fmt.Errorf("%s: %s", key.Field, strings.ReplaceAll(key.Rule, "QueryParameters", "query_parameters (--query-parameter)"))
	}
	return err
}

func printKey(w io.Writer, l keyLine) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range []struct{ name, normal string }{{"dataset_id", l.DatasetID}, {"version", l.Version}, {"source_uri", l.SourceURI}} {
		fmt.Fprintf(t, "%s\t%s\n", c.name, c.normal)
		for _, s := range l.Steps {
			if s.Component == c.name {
				fmt.Fprintf(t, "\t  %s: %q -> %q\n", s.Step, s.From, s.To)
			}
		}
	}
	if l.Checksum != "" {
		fmt.Fprintf(t, "checksum\t%s\n", l.Checksum)
	}
	fmt.Fprintf(t, "joined\t%s\n", l.Joined)
	fmt.Fprintf(t, "key\t%s\n", l.IdempotencyKey)
	if l.Verified != nil {
		fmt.Fprintf(t, "verified\t%t\n", *l.Verified)
	}
	return t.Flush()
}
