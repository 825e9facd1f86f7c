package main

import (
	"bytes"
	"context"
	"encoding/json"

	sdk "github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/input"
	"github.com/kansas-frontier-matrix/sqsfifo/provenance"
)

type provenanceCmd struct {
	Format string `required:"" enum:"prov,openlineage" placeholder:"FORMAT" help:"prov: one PROV-JSON document. openlineage: run events, one on a line."`
	Queue  string `default:"queue" placeholder:"NAME" help:"Name of the queue, for example its ARN (default ${default})."`

	File []string `arg:"" optional:"" help:"Files of provenance records; - or none is standard input."`
}

func (*provenanceCmd) Help() string {
	return `Writes the records of sqsfifo.ProvenanceWriter as W3C PROV or as OpenLineage run events. Each record is one run: the send of one event by its event source. It uses the event's dataset, and generates the message if SQS stored it. Duplicates and replays are marked by the fields of the record, which all are in the output.

A PROV document is held in memory as a whole. The exit code is 2 if a line is no record.

Examples:

	sqsfifo provenance --format openlineage records.jsonl
	sqsfifo provenance --format prov records.jsonl > records.prov.json`
}

func (c *provenanceCmd) run(_ context.Context, std stdio) error {
	lines, err := input.Open(c.File, std.in, false)
	if err != nil {
		return err
	}
	out, document := newLineWriter(std.out), provenance.Document{}
	for line, err := range lines.All() {
		if err != nil {
			return err
		}
		var r sdk.ProvenanceRecord
		d := json.NewDecoder(bytes.NewReader(line.Text))
		d.DisallowUnknownFields()
		if err := d.Decode(&r); err != nil {
			return line.Wrong(err)
		}
		if c.Format == "prov" {
			document.Add(r, c.Queue)
			continue
		}
		for _, e := range provenance.RunEvents(r, c.Queue) {
			out.write(e)
		}
	}
	if c.Format == "prov" {
		out.write(document)
	}
	return out.flush()
}
