package provenance_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/provenance"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

var update = flag.Bool("update", false, "make testdata again: the records of a run, and what becomes of them")

const queue = "arn:aws:sqs:us-east-1:000000000000:scenes.fifo"

type scene struct {
	ID       string    `json:"id"`
	Acquired time.Time `json:"acquired"`
}

// run sends real Landsat scenes: eight events, a duplicate, a replay after the interval, and
// one that SQS refuses. It returns the lines of ProvenanceWriter.
func run(t *testing.T) []byte {
	t.Helper()
	var records bytes.Buffer
	q, err := sqstest.NewQueue(sqstest.Config{})
	require.NoError(t, err)
	p, err := sqsfifo.NewProducer(q, sqsfifo.Config[scene]{
		QueueURL: q.URL(), Source: "kfm.remote-sensing.landsat-refresh",
		Telemetry: sqsfifo.Telemetry{Provenance: sqsfifo.ProvenanceWriter(&records)},
		Identify: func(s scene) (sqsfifo.Identity, error) {
			return sqsfifo.Identity{Group: s.ID[10:16], Time: s.Acquired, Dataset: &sqsfifo.Dataset{
				ID: s.ID, Version: "2.0.0", SourceURI: "s3://usgs-landsat/collection02/" + s.ID + "_MTL.json", CARELabel: "CARE-Compliant",
			}}, nil
		},
	})
	require.NoError(t, err)
	day := time.Date(1983, 1, 10, 0, 0, 0, 0, time.UTC)
	var scenes []scene
	for i, id := range []string{
		"LT04_L2SP_002026_19830110_02_T1", "LT05_L2SP_010067_19860424_02_T2", "LE07_L2SP_021030_20100109_02_T1", "LC08_L2SP_047027_20201204_02_T1",
		"LC09_L2SP_010065_20220129_02_T1", "LM01_L1GS_001010_19720908_02_T2", "LM02_L1GS_001004_19750411_02_T2", "LM03_L1GS_001001_19780510_02_T2",
	} {
		scenes = append(scenes, scene{id, day.AddDate(i, 0, 0)})
	}
	for _, r := range p.SendBatch(t.Context(), append(scenes, scenes[0])) {
		require.NoError(t, r.Err)
	}
	q.Advance(6 * time.Minute)
	_, err = p.Send(t.Context(), scenes[1])
	require.NoError(t, err)
	_, err = p.Send(t.Context(), scene{"LM04_L1GS_001 01_19830527_02_T2", day})
	require.Error(t, err)
	require.NoError(t, p.Close(t.Context()))
	return records.Bytes()
}

func read(t *testing.T, lines []byte) (records []sqsfifo.ProvenanceRecord) {
	t.Helper()
	for s := bufio.NewScanner(bytes.NewReader(lines)); s.Scan(); {
		var r sqsfifo.ProvenanceRecord
		require.NoError(t, json.Unmarshal(s.Bytes(), &r))
		records = append(records, r)
	}
	return records
}

// The records of a Landsat run give the golden files, and the Python reader finds the counts
// of the records in both.
func TestLandsat(t *testing.T) {
	if *update {
		require.NoError(t, os.WriteFile("testdata/records.jsonl", run(t), 0o600))
	}
	lines, err := os.ReadFile("testdata/records.jsonl")
	require.NoError(t, err)
	records := read(t, lines)
	var events bytes.Buffer
	sink, document := provenance.OpenLineage(&events, queue), provenance.Document{}
	want := map[string]int{}
	for _, r := range records {
		require.NoError(t, sink(r))
		document.Add(r, queue)
		want["runs"]++
		want[string(r.Outcome)]++
		if r.DuplicateDetected {
			want["duplicate_detected"]++
		}
		if r.ReplayTriggered {
			want["replay_triggered"]++
		}
	}
	require.Equal(t, 1, want["duplicate"], "%v", want)
	require.Equal(t, 9, want["stored"])
	require.Positive(t, want["replay_triggered"])
	prov, err := json.MarshalIndent(document, "", " ")
	require.NoError(t, err)
	for name, got := range map[string][]byte{"openlineage.jsonl": events.Bytes(), "prov.json": append(prov, '\n')} {
		if *update {
			require.NoError(t, os.WriteFile("testdata/"+name, got, 0o600))
		}
		golden, err := os.ReadFile("testdata/" + name)
		require.NoError(t, err)
		assert.Equal(t, string(golden), string(got), name)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 for the second reader")
	}
	for _, name := range []string{"openlineage.jsonl", "prov.json"} {
		out, err := exec.Command(python, "testdata/read.py", "testdata/"+name).Output()
		require.NoError(t, err, name)
		var got map[string]int
		require.NoError(t, json.Unmarshal(out, &got))
		assert.Equal(t, want, got, name)
	}
}

// Each outcome has its event type; only a stored event generates a message, and an event in
// doubt has no end.
func TestOutcomes(t *testing.T) {
	for outcome, kind := range map[sqsfifo.ProvenanceOutcome]string{
		sqsfifo.ProvenanceStored: "COMPLETE", sqsfifo.ProvenanceDuplicate: "COMPLETE", sqsfifo.ProvenanceNotStored: "FAIL", sqsfifo.ProvenanceInDoubt: "OTHER", sqsfifo.ProvenanceAltered: "FAIL",
	} {
		r := sqsfifo.ProvenanceRecord{Time: time.Unix(1, 0), Outcome: outcome, EventID: "019ae7b0-8c00-7abc-9def-0123456789ab", MessageID: "m"}
		events := provenance.RunEvents(r, queue)
		assert.Equal(t, "START", events[0]["eventType"])
		assert.Equal(t, kind, events[1]["eventType"], outcome)
		assert.Equal(t, events[0]["run"], events[1]["run"])
		stored := outcome == sqsfifo.ProvenanceStored
		assert.Equal(t, stored, len(events[1]["outputs"].([]any)) == 1, outcome)
		d := provenance.Document{}
		d.Add(r, queue)
		assert.Equal(t, stored, len(d["wasGeneratedBy"]) == 1, outcome)
		for _, a := range d["activity"] {
			_, ended := a.(map[string]any)["prov:endTime"]
			assert.Equal(t, outcome != sqsfifo.ProvenanceInDoubt, ended, outcome)
		}
		later := r
		later.Time = later.Time.Add(time.Millisecond)
		assert.NotEqual(t, events[0]["run"], provenance.RunEvents(later, queue)[0]["run"], "another send of the event is another run")
	}
}

// A record of an event that Identify refused has a run and an agent.
func TestRecordWithoutEvent(t *testing.T) {
	var out strings.Builder
	require.NoError(t, provenance.PROV(&out, queue)(sqsfifo.ProvenanceRecord{Time: time.Unix(1, 0), Outcome: sqsfifo.ProvenanceNotStored, ErrorType: "identify"}))
	assert.Equal(t, 1, strings.Count(out.String(), "\n"))
	assert.Contains(t, out.String(), `"source:unknown"`)
	assert.NotContains(t, out.String(), `"entity"`)
}
