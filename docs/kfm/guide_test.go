package kfm

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// beginnings has, for each reference, the language of its snippet in the guide and the lines
// before it. The lines import the client of testdata in the place of the AWS SDK.
var beginnings = []struct{ language, file, lines string }{
	{"py", "guide.py", `
import json, os, sys, types
sys.path.append(os.environ["TESTDATA"])
from producer import client, kfm
boto3 = types.SimpleNamespace(client=lambda service: client)
scene, queue_url = json.loads(os.environ["SCENE"]), os.environ["SQSFIFO_QUEUE_URL"]
`},
	{"ts", "guide.mjs", `
const { client, kfm } = await import(process.env.TESTDATA + "/producer.mjs");
const SQS = function () { return client; };
const scene = JSON.parse(process.env.SCENE), queueURL = process.env.SQSFIFO_QUEUE_URL;
`},
}

// The three programs of docs/guide/languages.md, run as printed, send one message: all bodies
// are equal.
func TestSceneOfTheGuideIsOneMessage(t *testing.T) {
	type Scene struct {
		ID       string    `json:"id"`
		PathRow  string    `json:"path_row"`
		Acquired time.Time `json:"acquired"`
	}
	ctx, scene := t.Context(), Scene{"LC08_L2SP_047027_20201204_02_T1", "047027", time.Date(2020, 12, 4, 19, 2, 11, 194486000, time.UTC)}
	q, err := sqstest.NewQueue(sqstest.Config{})
	require.NoError(t, err)
	server := httptest.NewServer(sqstest.NewServer(q))
	defer server.Close()
	client, queueURL := q.Client(), q.URL()

	producer, err := sqsfifo.NewProducer(client, sqsfifo.Config[Scene]{
		QueueURL:     queueURL,
		Organization: "acme", Source: "acme.imagery.scenes",
		Identify: func(s Scene) (sqsfifo.Identity, error) {
			key, err := sqsfifo.JoinKey("landsat", s.ID)
			return sqsfifo.Identity{DedupeKey: key, Group: s.PathRow, Time: s.Acquired}, err
		},
	})
	require.NoError(t, err)
	receipt, err := producer.Send(ctx, scene)
	require.NoError(t, err)
	require.NoError(t, producer.Close(ctx))

	guide, err := os.ReadFile("../guide/languages.md")
	require.NoError(t, err)
	sent := 0
	for i, b := range beginnings {
		t.Run(b.language, func(t *testing.T) {
			snippets := regexp.MustCompile("(?sm)^```"+b.language+"\n(.*?)^```").FindAllSubmatch(guide, -1)
			require.Len(t, snippets, 1)
			folder := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(folder, b.file), append([]byte(b.lines), snippets[0][1]...), 0o600))
			r := references[i]
			r.harness = b.file
			reference, err := filepath.Abs(r.folder)
			require.NoError(t, err)
			testdata, err := filepath.Abs("testdata")
			require.NoError(t, err)
			c := r.command(t, folder)
			c.Env = append(c.Env, "KFM_REFERENCE="+reference, "TESTDATA="+testdata, "AWS_ENDPOINT_URL_SQS="+server.URL,
				"SQSFIFO_QUEUE_URL="+server.URL+"/"+sqstest.Account+"/"+q.Name(),
				`SCENE={"id":"LC08_L2SP_047027_20201204_02_T1","path_row":"047027","acquired":"2020-12-04T19:02:11.194486Z"}`)
			out, err := c.CombinedOutput()
			require.NoError(t, err, string(out))
			sent++
		})
	}
	require.Len(t, q.Messages(), 1)
	assert.Equal(t, receipt.MessageID, q.Messages()[0].MessageID)
	assert.Len(t, q.Suppressed(), sent)
}
