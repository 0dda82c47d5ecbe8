SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.agents (
    id character varying(12) NOT NULL,
    name character varying(64) NOT NULL,
    instructions text,
    instructions_path character varying(1024),
    project_id character varying(12),
    boss_id character varying(12),
    max_iterations integer NOT NULL,
    cost_limit double precision,
    provider_id character varying(12),
    model character varying(255),
    labels json NOT NULL,
    concurrency integer NOT NULL,
    description text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    removed_at timestamp with time zone,
    organization_id character varying(12) NOT NULL
);
CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE public.api_tokens (
    id character varying(12) NOT NULL,
    name character varying(128) NOT NULL,
    role character varying(16) NOT NULL,
    secret_hash character varying(64) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    last_used_at timestamp with time zone,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    organization_id character varying(12) NOT NULL,
    everywhere boolean DEFAULT false NOT NULL
);
CREATE TABLE public.blobs (
    run_id character varying(12) NOT NULL,
    sha256 character varying(64) NOT NULL,
    size bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    organization_id character varying(12) NOT NULL,
    sealed boolean DEFAULT false NOT NULL
);
CREATE TABLE public.comments (
    id bigint NOT NULL,
    task_id character varying(32) NOT NULL,
    author character varying(64) NOT NULL,
    agent_id character varying(12),
    "user" character varying(128) NOT NULL,
    kind character varying(24) NOT NULL,
    text text NOT NULL,
    run_id character varying(12),
    at timestamp with time zone NOT NULL,
    organization_id character varying(12) NOT NULL
);
CREATE SEQUENCE public.comments_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.comments_id_seq OWNED BY public.comments.id;
CREATE TABLE public.counters (
    name character varying(64) NOT NULL,
    value bigint NOT NULL
);
CREATE TABLE public.dispatches (
    id character varying(12) NOT NULL,
    order_id character varying(12) NOT NULL,
    drone_id character varying(12) NOT NULL,
    generation integer NOT NULL,
    created_at timestamp with time zone NOT NULL,
    published_at timestamp with time zone,
    claimed_at timestamp with time zone,
    closed_at timestamp with time zone,
    organization_id character varying(12) NOT NULL
);
CREATE TABLE public.drones (
    id character varying(12) NOT NULL,
    name character varying(64) NOT NULL,
    machine_id character varying(128) NOT NULL,
    public_key character varying(64) NOT NULL,
    labels json NOT NULL,
    fixed_labels json NOT NULL,
    concurrency integer NOT NULL,
    sandbox character varying(32) NOT NULL,
    version character varying(32) NOT NULL,
    host character varying(255) NOT NULL,
    token_hash character varying(64) NOT NULL,
    broker_password_hash character varying(64) NOT NULL,
    registered_at timestamp with time zone NOT NULL,
    removed_at timestamp with time zone,
    draining boolean NOT NULL,
    boot_id character varying(64),
    last_seen_at timestamp with time zone,
    stopped_at timestamp with time zone,
    beat json,
    organization_id character varying(12) NOT NULL,
    serves json DEFAULT '[]'::json NOT NULL
);
CREATE TABLE public.inbox (
    id character varying(12) NOT NULL,
    drone_id character varying(12) NOT NULL,
    run_id character varying(12),
    body json NOT NULL,
    created_at timestamp with time zone NOT NULL,
    sent_at timestamp with time zone,
    done_at timestamp with time zone,
    organization_id character varying(12) NOT NULL
);
CREATE TABLE public.join_tokens (
    id character varying(12) NOT NULL,
    secret_hash character varying(64) NOT NULL,
    labels json NOT NULL,
    uses integer NOT NULL,
    used integer NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    revoked_at timestamp with time zone,
    organization_id character varying(12) NOT NULL,
    serves json DEFAULT '[]'::json NOT NULL
);
CREATE TABLE public.key_pairs (
    id character varying(16) NOT NULL,
    public_key character varying NOT NULL,
    sealed_private_key character varying NOT NULL,
    created_at timestamp with time zone NOT NULL,
    retired_at timestamp with time zone
);
CREATE TABLE public.login_links (
    id character varying(12) NOT NULL,
    secret_hash character varying(64) NOT NULL,
    role character varying(16) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone,
    organization_id character varying(12) NOT NULL,
    everywhere boolean DEFAULT false NOT NULL
);
CREATE TABLE public.orders (
    id character varying(12) NOT NULL,
    number bigint NOT NULL,
    "user" character varying(128) NOT NULL,
    project_id character varying(12) NOT NULL,
    session_id character varying(12) NOT NULL,
    provider_id character varying(12) NOT NULL,
    model character varying(255) NOT NULL,
    mode character varying(16) NOT NULL,
    priority integer NOT NULL,
    approve character varying(16) NOT NULL,
    allow json NOT NULL,
    limits json NOT NULL,
    prompt text NOT NULL,
    idempotency_key character varying(255),
    request_hash character varying(64),
    wanted_drone_id character varying(12),
    wanted_labels json NOT NULL,
    drone_id character varying(12),
    run_id character varying(12),
    generation integer NOT NULL,
    attempt integer NOT NULL,
    lost_runs integer NOT NULL,
    max_attempts integer NOT NULL,
    grant_until timestamp with time zone,
    status character varying(24) NOT NULL,
    reason text NOT NULL,
    exit_status character varying(32),
    verification character varying(24),
    created_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone,
    ended_at timestamp with time zone,
    step_count integer NOT NULL,
    response text,
    branch character varying(255),
    base_commit character varying(64),
    head_commit character varying(64),
    pushed boolean NOT NULL,
    push_error text,
    late_refs json NOT NULL,
    result_run_id character varying(12),
    patch_sha256 character varying(64),
    patch_bytes integer NOT NULL,
    bundle_sha256 character varying(64),
    receipt json,
    organization_id character varying(12) NOT NULL,
    fresh_generation integer DEFAULT 0 NOT NULL,
    renewed_generation integer DEFAULT 0 NOT NULL,
    purpose character varying(16) DEFAULT 'work'::character varying NOT NULL,
    asked json,
    agent_id character varying(12),
    task_id character varying(32),
    pull_request json
);
CREATE TABLE public.organizations (
    id character varying(12) NOT NULL,
    name character varying(64) NOT NULL,
    description text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    acronym character varying(16) DEFAULT ''::character varying NOT NULL,
    last_task integer DEFAULT 0 NOT NULL,
    project_id character varying(12),
    concurrency integer DEFAULT 4 NOT NULL,
    max_hand_offs integer DEFAULT 20 NOT NULL,
    paused_at timestamp with time zone
);
CREATE TABLE public.owners (
    name character varying(64) NOT NULL,
    holder character varying(64) NOT NULL,
    expires_at timestamp with time zone NOT NULL
);
CREATE TABLE public.projects (
    id character varying(12) NOT NULL,
    slug character varying(64) NOT NULL,
    name character varying(128) NOT NULL,
    git_url text NOT NULL,
    sealed_git_url text,
    branch character varying(255),
    setup json NOT NULL,
    verify json NOT NULL,
    provider_id character varying(12),
    budget_usd_day double precision,
    created_at timestamp with time zone NOT NULL,
    removed_at timestamp with time zone,
    organization_id character varying(12) NOT NULL,
    pull_requests character varying(16) DEFAULT 'never'::character varying NOT NULL,
    trailers json DEFAULT '[]'::json NOT NULL
);
CREATE TABLE public.providers (
    id character varying(12) NOT NULL,
    name character varying(64) NOT NULL,
    model character varying(255) NOT NULL,
    api_base text,
    context_window integer NOT NULL,
    protocol character varying(8) NOT NULL,
    params json NOT NULL,
    fallbacks json NOT NULL,
    sealed_key text,
    key_variable character varying(128),
    created_at timestamp with time zone NOT NULL,
    removed_at timestamp with time zone,
    organization_id character varying(12) NOT NULL
);
CREATE TABLE public.raw_events (
    id bigint NOT NULL,
    drone_id character varying(12) NOT NULL,
    entry_id character varying(64) NOT NULL,
    fields json NOT NULL,
    error text NOT NULL,
    at timestamp with time zone NOT NULL,
    organization_id character varying(12) NOT NULL
);
CREATE SEQUENCE public.raw_events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.raw_events_id_seq OWNED BY public.raw_events.id;
CREATE TABLE public.runs (
    id character varying(12) NOT NULL,
    order_id character varying(12) NOT NULL,
    drone_id character varying(12) NOT NULL,
    generation integer NOT NULL,
    attempt integer NOT NULL,
    status character varying(16) NOT NULL,
    exit_status character varying(32),
    reason text NOT NULL,
    late boolean NOT NULL,
    boot_id character varying(64) NOT NULL,
    sandbox character varying(32) NOT NULL,
    started_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    beat_at timestamp with time zone,
    doing text NOT NULL,
    last_seq integer NOT NULL,
    tool_calls integer NOT NULL,
    input_tokens integer NOT NULL,
    thinking_tokens integer NOT NULL,
    output_tokens integer NOT NULL,
    cost_usd double precision,
    duration_ms integer NOT NULL,
    organization_id character varying(12) NOT NULL,
    doing_since timestamp with time zone,
    progress_at timestamp with time zone,
    waits_for character varying(16) DEFAULT ''::character varying NOT NULL,
    resumed_run_id character varying(12),
    resumed_seq integer DEFAULT 0 NOT NULL,
    agent_id character varying(12),
    task_id character varying(32)
);
CREATE TABLE public.schedules (
    id character varying(12) NOT NULL,
    name character varying(64) NOT NULL,
    cron character varying(255) NOT NULL,
    timezone character varying(64) NOT NULL,
    missed character varying(8) NOT NULL,
    next_at timestamp with time zone,
    task json NOT NULL,
    enabled boolean NOT NULL,
    last_at timestamp with time zone,
    last_task_id character varying(32),
    last_error text NOT NULL,
    "user" character varying(128) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    removed_at timestamp with time zone,
    organization_id character varying(12) NOT NULL
);
CREATE TABLE public.session_entries (
    id character varying(12) NOT NULL,
    number bigint NOT NULL,
    session_id character varying(12) NOT NULL,
    parent_id character varying(12),
    kind character varying(24) NOT NULL,
    order_id character varying(12),
    data json NOT NULL,
    at timestamp with time zone NOT NULL,
    organization_id character varying(12) NOT NULL
);
CREATE TABLE public.sessions (
    id character varying(12) NOT NULL,
    project_id character varying(12) NOT NULL,
    name character varying(255) NOT NULL,
    mode character varying(16) NOT NULL,
    approve character varying(16),
    allow json NOT NULL,
    leaf_id character varying(12),
    compact text,
    forked_from_id character varying(12),
    created_at timestamp with time zone NOT NULL,
    organization_id character varying(12) NOT NULL,
    task_id character varying(32)
);
CREATE TABLE public.steps (
    id bigint NOT NULL,
    order_id character varying(12) NOT NULL,
    run_id character varying(12) NOT NULL,
    seq integer NOT NULL,
    run_seq integer NOT NULL,
    kind character varying(24) NOT NULL,
    body json NOT NULL,
    at timestamp with time zone NOT NULL,
    drone_at timestamp with time zone NOT NULL,
    late boolean NOT NULL,
    organization_id character varying(12) NOT NULL
);
CREATE SEQUENCE public.steps_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.steps_id_seq OWNED BY public.steps.id;
CREATE TABLE public.tasks (
    id character varying(32) NOT NULL,
    number integer NOT NULL,
    title text NOT NULL,
    description text NOT NULL,
    status character varying(16) NOT NULL,
    assignee_id character varying(12),
    project_id character varying(12) NOT NULL,
    session_id character varying(12) NOT NULL,
    mode character varying(16) NOT NULL,
    priority integer NOT NULL,
    limits json NOT NULL,
    order_id character varying(12),
    hand_offs integer NOT NULL,
    "user" character varying(128) NOT NULL,
    queued_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    organization_id character varying(12) NOT NULL
);
CREATE TABLE public.trigger_deliveries (
    trigger_id character varying(12) NOT NULL,
    delivery character varying(128) NOT NULL,
    event character varying(128) NOT NULL,
    task_id character varying(32),
    outcome text NOT NULL,
    at timestamp with time zone NOT NULL,
    organization_id character varying(12) NOT NULL
);
CREATE TABLE public.triggers (
    id character varying(12) NOT NULL,
    name character varying(64) NOT NULL,
    kind character varying(16) NOT NULL,
    sealed_secret text NOT NULL,
    events json NOT NULL,
    task json NOT NULL,
    enabled boolean NOT NULL,
    last_at timestamp with time zone,
    last_task_id character varying(32),
    last_error text NOT NULL,
    "user" character varying(128) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    removed_at timestamp with time zone,
    organization_id character varying(12) NOT NULL
);
CREATE TABLE public.turns (
    id character varying(12) NOT NULL,
    session_id character varying(12) NOT NULL,
    order_id character varying(12) NOT NULL,
    "user" character varying(128) NOT NULL,
    prompt text NOT NULL,
    provider character varying(64) NOT NULL,
    model character varying(255) NOT NULL,
    mode character varying(16) NOT NULL,
    status character varying(16) NOT NULL,
    response text,
    stats json NOT NULL,
    created_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    organization_id character varying(12) NOT NULL
);
CREATE TABLE public.web_sessions (
    id character varying(12) NOT NULL,
    secret_hash character varying(64) NOT NULL,
    role character varying(16) NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    organization_id character varying(12) NOT NULL,
    everywhere boolean DEFAULT false NOT NULL
);
CREATE TABLE public.webhook_deliveries (
    id character varying(40) NOT NULL,
    webhook_id character varying(12) NOT NULL,
    event character varying(64) NOT NULL,
    data json NOT NULL,
    attempts integer NOT NULL,
    status_code integer,
    error text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    next_at timestamp with time zone,
    done_at timestamp with time zone,
    organization_id character varying(12) NOT NULL
);
CREATE TABLE public.webhooks (
    id character varying(12) NOT NULL,
    name character varying(64) NOT NULL,
    url text NOT NULL,
    sealed_secret text NOT NULL,
    events json NOT NULL,
    enabled boolean NOT NULL,
    failing_since timestamp with time zone,
    last_at timestamp with time zone,
    last_error text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    removed_at timestamp with time zone,
    organization_id character varying(12) NOT NULL
);
CREATE TABLE public.words (
    number bigint NOT NULL,
    order_id character varying(12) NOT NULL,
    "user" character varying(128) NOT NULL,
    text text NOT NULL,
    after boolean NOT NULL,
    interrupt boolean NOT NULL,
    run_id character varying(12),
    at timestamp with time zone NOT NULL,
    organization_id character varying(12) NOT NULL
);
CREATE SEQUENCE public.words_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.words_number_seq OWNED BY public.words.number;
ALTER TABLE ONLY public.comments ALTER COLUMN id SET DEFAULT nextval('public.comments_id_seq'::regclass);
ALTER TABLE ONLY public.raw_events ALTER COLUMN id SET DEFAULT nextval('public.raw_events_id_seq'::regclass);
ALTER TABLE ONLY public.steps ALTER COLUMN id SET DEFAULT nextval('public.steps_id_seq'::regclass);
ALTER TABLE ONLY public.words ALTER COLUMN number SET DEFAULT nextval('public.words_number_seq'::regclass);
INSERT INTO public.agents VALUES ('39b2d9dbd30f', 'lead', 'Work.', NULL, NULL, NULL, 50, NULL, NULL, NULL, '{}', 0, 'It works.', '2026-11-22 16:35:08.034723+00', NULL, '3667a8a94878');
INSERT INTO public.agents VALUES ('d942ec5a5f62', 'backend', 'Work.', NULL, NULL, '39b2d9dbd30f', 50, NULL, NULL, NULL, '{}', 0, 'It works.', '2026-11-22 16:35:08.131968+00', NULL, '3667a8a94878');
INSERT INTO public.agents VALUES ('e088edc19c4d', 'free', 'Work.', NULL, NULL, NULL, 50, NULL, NULL, NULL, '{}', 0, 'It works.', '2026-11-22 16:35:08.189065+00', NULL, '3667a8a94878');
INSERT INTO public.agents VALUES ('8ddab2770598', 'solo', 'Work.', NULL, NULL, NULL, 50, NULL, NULL, NULL, '{}', 1, 'It works.', '2026-11-22 16:35:08.239316+00', NULL, '3667a8a94878');
INSERT INTO public.alembic_version VALUES ('0003');
INSERT INTO public.blobs VALUES ('80945b58b366', '724c14943ee22294c7430066cd2724f5d0c08b35d529a7225c7cc35596abe992', 24, '2026-11-22 16:35:12.145404+00', '3667a8a94878', true);
INSERT INTO public.comments VALUES (1, 'DEFA-0002', 'free', 'e088edc19c4d', '', 'comment', 'I have a question.', '45c01d4652fd', '2026-11-22 16:35:09.424982+00', '3667a8a94878');
INSERT INTO public.comments VALUES (2, 'DEFA-0002', 'system', NULL, '', 'returned', 'free tagged nobody, no mention is open, and free has no boss. Back to the user.', '45c01d4652fd', '2026-11-22 16:35:09.500604+00', '3667a8a94878');
INSERT INTO public.comments VALUES (3, 'DEFA-0003', 'system', NULL, '', 'failed', 'The run of free failed: The time limit was reached (all of it: fleet run show a3e4155bb293). The task is with the user.', 'a3e4155bb293', '2026-11-22 16:35:09.846826+00', '3667a8a94878');
INSERT INTO public.comments VALUES (4, 'DEFA-0004', 'free', 'e088edc19c4d', '', 'comment', 'Finished.', '20ebf0f3089c', '2026-11-22 16:35:10.177144+00', '3667a8a94878');
INSERT INTO public.comments VALUES (5, 'DEFA-0004', 'system', NULL, '', 'returned', 'free tagged nobody, no mention is open, and free has no boss. Back to the user.', '20ebf0f3089c', '2026-11-22 16:35:10.253273+00', '3667a8a94878');
INSERT INTO public.comments VALUES (6, 'DEFA-0004', 'system', NULL, '', 'done', 'kim marked the task as done.', NULL, '2026-11-22 16:35:10.376702+00', '3667a8a94878');
INSERT INTO public.comments VALUES (7, 'DEFA-0005', 'system', NULL, '', 'canceled', 'kim canceled the task: the plan changed.', 'a446794fd76d', '2026-11-22 16:35:10.652826+00', '3667a8a94878');
INSERT INTO public.counters VALUES ('orders', 40);
INSERT INTO public.dispatches VALUES ('f45416c71d51', '36c0153031e2', '5b36b6085f26', 1, '2026-11-22 16:35:01.319587+00', '2026-11-22 16:35:02.01467+00', '2026-11-22 16:35:02.090498+00', '2026-11-22 16:35:02.253153+00', '3667a8a94878');
INSERT INTO public.dispatches VALUES ('9cdb248fdaf6', 'ed3afa217608', 'ea5831e289a4', 1, '2026-11-22 16:35:06.950549+00', '2026-11-22 16:35:06.99896+00', '2026-11-22 16:35:07.113728+00', '2026-11-22 16:35:07.143092+00', '3667a8a94878');
INSERT INTO public.dispatches VALUES ('f55347f669d8', 'ec9b47468bac', '5b36b6085f26', 1, '2026-11-22 16:35:02.417569+00', '2026-11-22 16:35:02.461962+00', '2026-11-22 16:35:02.53449+00', '2026-11-22 16:35:02.663554+00', '3667a8a94878');
INSERT INTO public.dispatches VALUES ('8497a7fedce1', 'e7400b589600', '5b36b6085f26', 1, '2026-11-22 16:35:02.773193+00', '2026-11-22 16:35:02.821269+00', '2026-11-22 16:35:02.919926+00', '2026-11-22 16:35:03.011515+00', '3667a8a94878');
INSERT INTO public.dispatches VALUES ('182ab96c43ea', '2ab6e2d69f5a', '871f87fa8876', 1, '2026-11-22 16:35:07.248303+00', '2026-11-22 16:35:07.306345+00', NULL, NULL, '3667a8a94878');
INSERT INTO public.dispatches VALUES ('aa26e88ab0cb', '4aa63176a5a6', '5b36b6085f26', 1, '2026-11-22 16:35:03.109546+00', '2026-11-22 16:35:03.149812+00', '2026-11-22 16:35:03.234751+00', '2026-11-22 16:35:03.296869+00', '3667a8a94878');
INSERT INTO public.dispatches VALUES ('c6830274a323', 'ba176254edc5', 'a964dc57ad8f', 1, '2026-11-22 16:35:07.308125+00', '2026-11-22 16:35:07.353923+00', '2026-11-22 16:35:07.499336+00', NULL, '3667a8a94878');
INSERT INTO public.dispatches VALUES ('6d2e47585a32', '4b7887e2b6c9', 'ea5831e289a4', 1, '2026-11-22 16:35:03.391947+00', '2026-11-22 16:35:03.443538+00', '2026-11-22 16:35:03.490382+00', '2026-11-22 16:35:03.580203+00', '3667a8a94878');
INSERT INTO public.dispatches VALUES ('86b761ae3a97', '296256c3a22c', 'a964dc57ad8f', 1, '2026-11-22 16:35:07.616355+00', '2026-11-22 16:35:07.655443+00', NULL, NULL, '3667a8a94878');
INSERT INTO public.dispatches VALUES ('1e5fe933d719', '645ebd1ef8d4', '5b36b6085f26', 1, '2026-11-22 16:35:03.76956+00', '2026-11-22 16:35:03.822543+00', '2026-11-22 16:35:03.832505+00', '2026-11-22 16:35:03.964421+00', '3667a8a94878');
INSERT INTO public.dispatches VALUES ('030192147fee', '10a8b2e55c9f', '5b36b6085f26', 1, '2026-11-22 16:35:04.046455+00', '2026-11-22 16:35:04.074864+00', '2026-11-22 16:35:04.112209+00', '2026-11-22 16:35:04.228799+00', '3667a8a94878');
INSERT INTO public.dispatches VALUES ('b7c812da3ce6', '9df42cfdb215', 'f46b16be054d', 1, '2026-11-22 16:35:07.737547+00', '2026-11-22 16:35:07.789139+00', NULL, '2026-11-22 16:35:07.949305+00', '3667a8a94878');
INSERT INTO public.dispatches VALUES ('b516d35ca842', '5fef3a6de73c', 'ea5831e289a4', 1, '2026-11-22 16:35:04.32321+00', '2026-11-22 16:35:04.364209+00', '2026-11-22 16:35:04.398653+00', '2026-11-22 16:35:04.513735+00', '3667a8a94878');
INSERT INTO public.dispatches VALUES ('52c8a7e7fca6', '222369ad8c10', '5b36b6085f26', 1, '2026-11-22 16:35:04.60856+00', '2026-11-22 16:35:04.655307+00', '2026-11-22 16:35:04.719024+00', NULL, '3667a8a94878');
INSERT INTO public.dispatches VALUES ('9308f9767888', '2424d8715b47', '5b36b6085f26', 1, '2026-11-22 16:35:04.876245+00', '2026-11-22 16:35:04.909723+00', '2026-11-22 16:35:04.954061+00', NULL, '3667a8a94878');
INSERT INTO public.dispatches VALUES ('5215c2912e2e', '7303a72e605f', '5b36b6085f26', 1, '2026-11-22 16:35:05.127223+00', '2026-11-22 16:35:05.165076+00', '2026-11-22 16:35:05.255635+00', NULL, '3667a8a94878');
INSERT INTO public.dispatches VALUES ('da50185027d1', '0bec75227a4c', 'ea5831e289a4', 1, '2026-11-22 16:35:05.363692+00', '2026-11-22 16:35:05.401469+00', '2026-11-22 16:35:05.430909+00', NULL, '3667a8a94878');
INSERT INTO public.dispatches VALUES ('144d8fe376c4', 'b6d56b057b83', '5b36b6085f26', 1, '2026-11-22 16:35:05.522976+00', '2026-11-22 16:35:05.57483+00', '2026-11-22 16:35:05.599464+00', NULL, '3667a8a94878');
INSERT INTO public.dispatches VALUES ('d2a725f00a0a', 'de73310ab6c5', '5b36b6085f26', 1, '2026-11-22 16:35:05.812775+00', '2026-11-22 16:35:05.858027+00', '2026-11-22 16:35:05.952537+00', NULL, '3667a8a94878');
INSERT INTO public.dispatches VALUES ('99adde2afb54', '9a50416c5b6b', '5b36b6085f26', 1, '2026-11-22 16:35:06.237341+00', '2026-11-22 16:35:06.295266+00', '2026-11-22 16:35:06.351895+00', NULL, '3667a8a94878');
INSERT INTO public.dispatches VALUES ('9af21f440714', '0fe2bb7f3f4b', '58c849766fa4', 1, '2026-11-22 16:35:06.755278+00', '2026-11-22 16:35:06.813655+00', NULL, '2026-11-22 16:35:06.790357+00', '3667a8a94878');
INSERT INTO public.dispatches VALUES ('253fa5e0ee46', 'dc368d896734', '5b36b6085f26', 1, '2026-11-22 16:35:08.079656+00', '2026-11-22 16:35:08.164739+00', '2026-11-22 16:35:08.318963+00', '2026-11-22 16:35:08.358624+00', '3667a8a94878');
INSERT INTO public.dispatches VALUES ('e6ce8fe138f9', '63b7768e7140', '5b36b6085f26', 1, '2026-11-22 16:35:11.113387+00', '2026-11-22 16:35:11.168526+00', '2026-11-22 16:35:11.23314+00', '2026-11-22 16:35:13.189497+00', '3667a8a94878');
INSERT INTO public.dispatches VALUES ('a1863f46713c', 'df9a5aeb230e', '5b36b6085f26', 1, '2026-11-22 16:35:08.165344+00', '2026-11-22 16:35:08.226362+00', '2026-11-22 16:35:08.420944+00', '2026-11-22 16:35:08.458911+00', '3667a8a94878');
INSERT INTO public.dispatches VALUES ('20ebf0f3089c', '8bc3596c1222', '5b36b6085f26', 1, '2026-11-22 16:35:09.954998+00', '2026-11-22 16:35:10.025271+00', '2026-11-22 16:35:10.066193+00', '2026-11-22 16:35:10.195761+00', '3667a8a94878');
INSERT INTO public.dispatches VALUES ('ea0435d54ec4', '1ac64cb39332', '5b36b6085f26', 1, '2026-11-22 16:35:08.218245+00', '2026-11-22 16:35:08.269697+00', '2026-11-22 16:35:08.503847+00', '2026-11-22 16:35:08.522776+00', '3667a8a94878');
INSERT INTO public.dispatches VALUES ('99a211751c83', '46d232210058', '5b36b6085f26', 1, '2026-11-22 16:35:08.270356+00', '2026-11-22 16:35:08.379441+00', '2026-11-22 16:35:08.421565+00', '2026-11-22 16:35:08.626737+00', '3667a8a94878');
INSERT INTO public.dispatches VALUES ('52fc5d451ee4', 'd1c963a0242e', '5b36b6085f26', 1, '2026-11-22 16:35:08.862122+00', '2026-11-22 16:35:08.952038+00', '2026-11-22 16:35:08.997904+00', NULL, '3667a8a94878');
INSERT INTO public.dispatches VALUES ('45c01d4652fd', '88728768c997', '5b36b6085f26', 1, '2026-11-22 16:35:09.145933+00', '2026-11-22 16:35:09.228913+00', '2026-11-22 16:35:09.248985+00', '2026-11-22 16:35:09.439206+00', '3667a8a94878');
INSERT INTO public.dispatches VALUES ('a3e4155bb293', '217db09d1dc0', '5b36b6085f26', 1, '2026-11-22 16:35:09.603177+00', '2026-11-22 16:35:09.704667+00', '2026-11-22 16:35:09.686455+00', '2026-11-22 16:35:09.812266+00', '3667a8a94878');
INSERT INTO public.dispatches VALUES ('a446794fd76d', 'b78fba58bd67', '5b36b6085f26', 1, '2026-11-22 16:35:10.46727+00', '2026-11-22 16:35:10.530457+00', '2026-11-22 16:35:10.556897+00', NULL, '3667a8a94878');
INSERT INTO public.dispatches VALUES ('2fbf5171c9e9', 'dda8fb983f5c', '5b36b6085f26', 1, '2026-11-22 16:35:10.767251+00', '2026-11-22 16:35:10.834712+00', '2026-11-22 16:35:10.938471+00', NULL, '3667a8a94878');
INSERT INTO public.dispatches VALUES ('491246414342', 'd62d95672988', '5b36b6085f26', 1, '2026-11-22 16:35:11.889875+00', '2026-11-22 16:35:11.95316+00', '2026-11-22 16:35:12.069245+00', NULL, '3667a8a94878');
INSERT INTO public.dispatches VALUES ('733b7db09ecf', '9df42cfdb215', 'ea5831e289a4', 2, '2026-11-22 16:35:08.003102+00', '2026-11-22 16:35:13.076547+00', NULL, NULL, '3667a8a94878');
INSERT INTO public.dispatches VALUES ('1c2509ab4259', '57e38a378640', '5b36b6085f26', 1, '2026-11-22 16:35:11.351989+00', '2026-11-22 16:35:11.414336+00', '2026-11-22 16:35:11.468751+00', '2026-11-22 16:35:13.326214+00', '3667a8a94878');
INSERT INTO public.dispatches VALUES ('80945b58b366', '8e7bdac3ad93', '5b36b6085f26', 1, '2026-11-22 16:35:11.645091+00', '2026-11-22 16:35:11.713085+00', '2026-11-22 16:35:11.773754+00', '2026-11-22 16:35:13.503613+00', '3667a8a94878');
INSERT INTO public.dispatches VALUES ('12a90e4f10f0', '3d28fb9e09cf', '09c0f22bba5d', 1, '2026-11-22 16:35:12.356216+00', '2026-11-22 16:35:13.153057+00', NULL, '2026-11-22 16:35:13.736804+00', '3667a8a94878');
INSERT INTO public.drones VALUES ('58c849766fa4', 'sale', 'machine-of-sale', 'b7U9eUC6wjS8zgOTFqV3Oo3YusDtSGXX6b8DbwTC8G0=', '{}', '{}', 2, 'none', '', 'test-host', 'f716636289fc5425f4f1aa96c10475a17f45fae90b2e70f037a14a992aa6c5fb', '7de613ba8ac4c656f21abc2424cd9fe8ee0c772e5bc14e17897655073a525b1b', '2026-11-22 16:35:01.246644+00', '2026-11-22 16:35:06.780721+00', false, NULL, NULL, NULL, NULL, '3667a8a94878', '[]');
INSERT INTO public.drones VALUES ('871f87fa8876', 'dora', 'machine-of-dora', 'DIbb2pTVcXBdtuEcrMO1kcxFtZQ//+W5Jjz0pOwTb1I=', '{}', '{}', 2, 'none', '', 'test-host', 'ecee941215ae0482e3fdacc687e604a4cc62a395fc34e28755abfbbb748dee63', 'ac2f89fa1b387e5262d5ec531c316d3b967d9f3fd0474fef86c412c269b82036', '2026-11-22 16:35:01.232962+00', NULL, false, NULL, NULL, NULL, NULL, '3667a8a94878', '[]');
INSERT INTO public.drones VALUES ('09c0f22bba5d', 'lena', 'machine-of-lena', 'zPjEF0v9Gr30floT2bPDXIYK/KuEeKjNlpeKFs8R90c=', '{}', '{}', 2, 'none', '0', 'test-host', '6c039e29c69ac9263464da45939dec71d1b513b6853a0b95b60f64845d25b53c', '939d13dda38c797ddefa87712aea0b5eb1a7c2ff258cd48b0fade9fedfb638b2', '2026-11-22 16:35:12.278216+00', '2026-11-22 16:35:13.729021+00', false, 'a6e36b282224', '2026-11-22 16:35:13.605809+00', NULL, '{"drone_id": "09c0f22bba5d", "machine_id": "machine-of-lena", "boot_id": "a6e36b282224", "sent_at": "2026-11-22T16:35:13.481388Z", "version": "0", "sandbox": "none", "concurrency": 2, "warm": false, "draining": false, "full": "", "leaving": false, "stopping": false, "runs": [], "done": [], "abilities": ["resume", "teams"]}', '3667a8a94878', '[]');
INSERT INTO public.drones VALUES ('ea5831e289a4', 'ada', 'machine-of-ada', '2OCe3Io8Li/4/6UZK4KA1qLzA8ulbwwvZvxqXR8IKik=', '{"os": "linux"}', '{"os": "linux"}', 5, 'none', '0', 'test-host', 'd79212b7e6049b1d7d4c5ff156de9347f3073b295b3dd27d24b2b94808501e0a', 'f29806f8e78ae4fcec505ac03943c8f394a1f9e681ce5e1c028c0386a9abb453', '2026-11-22 16:35:01.215472+00', NULL, false, 'e431a14d469f', '2026-11-22 16:35:13.750936+00', NULL, '{"drone_id": "ea5831e289a4", "machine_id": "machine-of-ada", "boot_id": "e431a14d469f", "sent_at": "2026-11-22T16:35:13.584973Z", "version": "0", "sandbox": "none", "concurrency": 5, "warm": false, "draining": false, "full": "", "leaving": false, "stopping": false, "runs": [{"run_id": "da50185027d1", "order_id": "0bec75227a4c", "generation": 1, "doing": "", "since": null, "progress_at": null, "doing_seconds": 0.0, "quiet_seconds": 0.0, "waits_for": "", "last_seq": 3, "ended": false}], "done": [], "abilities": ["resume", "teams"]}', '3667a8a94878', '[]');
INSERT INTO public.drones VALUES ('a964dc57ad8f', 'mila', 'machine-of-mila', 'gfBfY05tAREkmjtgDiMiB5aJV10fdUsACpcH0JYgC00=', '{}', '{}', 1, 'none', '0', 'test-host', 'd1944d7e79acf7730abe5e3003e104d894bf81890353072ce35e8cc773115d42', '89a7399f730ba786928dd0b6cfd874ae018f01d7541612d3cb5d3bc0cf82b655', '2026-11-22 16:35:01.176582+00', NULL, false, 'e8997c6b37dd', '2026-11-22 16:35:13.792497+00', NULL, '{"drone_id": "a964dc57ad8f", "machine_id": "machine-of-mila", "boot_id": "e8997c6b37dd", "sent_at": "2026-11-22T16:35:13.580688Z", "version": "0", "sandbox": "none", "concurrency": 1, "warm": false, "draining": false, "full": "", "leaving": false, "stopping": false, "runs": [{"run_id": "c6830274a323", "order_id": "ba176254edc5", "generation": 1, "doing": "", "since": null, "progress_at": null, "doing_seconds": 0.0, "quiet_seconds": 0.0, "waits_for": "", "last_seq": 3, "ended": false}], "done": [], "abilities": ["resume", "teams"]}', '3667a8a94878', '[]');
INSERT INTO public.drones VALUES ('f46b16be054d', 'nino', 'machine-of-nino', 'mvwb3BTIeledBMbWZkbaqc7pVUM4S41SDnD2LD4uL0M=', '{"os": "linux"}', '{"os": "linux"}', 2, 'none', '0', 'test-host', '294f8dd755e93292af99365c9ae88272ef266acc7bdae321e6e1b07ae8789ccf', 'c26a2be8632ad7dd4eaaf0fb9521bb63256f4a45bd34e6c25c6ce56c94560b06', '2026-11-22 16:35:01.197414+00', NULL, false, '5e3bfb34bf63', '2026-11-22 16:35:13.803403+00', NULL, '{"drone_id": "f46b16be054d", "machine_id": "machine-of-nino", "boot_id": "5e3bfb34bf63", "sent_at": "2026-11-22T16:35:13.584246Z", "version": "0", "sandbox": "none", "concurrency": 2, "warm": false, "draining": true, "full": "", "leaving": false, "stopping": false, "runs": [], "done": [], "abilities": ["resume", "teams"]}', '3667a8a94878', '[]');
INSERT INTO public.drones VALUES ('5b36b6085f26', 'oka', 'machine-of-oka', 'oYmbBUgowM6n6/1eWV+2RSwtd8u1bj86kpyZjOkXbXw=', '{}', '{}', 30, 'none', '0', 'test-host', '055c9f5482dd04708baf36ab189438d52f376f3019236a47330b80e8ff0a8df5', '42a79b6597cda13df2e4be00997c1d9df35eced973365a5872a0423254be82fb', '2026-11-22 16:35:01.120243+00', NULL, false, '0c0552d9680a', '2026-11-22 16:35:13.813523+00', NULL, '{"drone_id": "5b36b6085f26", "machine_id": "machine-of-oka", "boot_id": "0c0552d9680a", "sent_at": "2026-11-22T16:35:13.575543Z", "version": "0", "sandbox": "none", "concurrency": 30, "warm": false, "draining": false, "full": "", "leaving": false, "stopping": false, "runs": [{"run_id": "52c8a7e7fca6", "order_id": "222369ad8c10", "generation": 1, "doing": "", "since": null, "progress_at": null, "doing_seconds": 0.0, "quiet_seconds": 0.0, "waits_for": "", "last_seq": 3, "ended": false}, {"run_id": "9308f9767888", "order_id": "2424d8715b47", "generation": 1, "doing": "", "since": null, "progress_at": null, "doing_seconds": 0.0, "quiet_seconds": 0.0, "waits_for": "", "last_seq": 3, "ended": false}, {"run_id": "5215c2912e2e", "order_id": "7303a72e605f", "generation": 1, "doing": "", "since": null, "progress_at": null, "doing_seconds": 0.0, "quiet_seconds": 0.0, "waits_for": "", "last_seq": 3, "ended": false}, {"run_id": "144d8fe376c4", "order_id": "b6d56b057b83", "generation": 1, "doing": "", "since": null, "progress_at": null, "doing_seconds": 0.0, "quiet_seconds": 0.0, "waits_for": "", "last_seq": 4, "ended": false}, {"run_id": "d2a725f00a0a", "order_id": "de73310ab6c5", "generation": 1, "doing": "", "since": null, "progress_at": null, "doing_seconds": 0.0, "quiet_seconds": 0.0, "waits_for": "", "last_seq": 4, "ended": false}, {"run_id": "99adde2afb54", "order_id": "9a50416c5b6b", "generation": 1, "doing": "", "since": null, "progress_at": null, "doing_seconds": 0.0, "quiet_seconds": 0.0, "waits_for": "", "last_seq": 5, "ended": false}, {"run_id": "52fc5d451ee4", "order_id": "d1c963a0242e", "generation": 1, "doing": "", "since": null, "progress_at": null, "doing_seconds": 0.0, "quiet_seconds": 0.0, "waits_for": "", "last_seq": 3, "ended": false}, {"run_id": "a446794fd76d", "order_id": "b78fba58bd67", "generation": 1, "doing": "", "since": null, "progress_at": null, "doing_seconds": 0.0, "quiet_seconds": 0.0, "waits_for": "", "last_seq": 3, "ended": false}, {"run_id": "2fbf5171c9e9", "order_id": "dda8fb983f5c", "generation": 1, "doing": "", "since": null, "progress_at": null, "doing_seconds": 0.0, "quiet_seconds": 0.0, "waits_for": "", "last_seq": 3, "ended": false}, {"run_id": "491246414342", "order_id": "d62d95672988", "generation": 1, "doing": "", "since": null, "progress_at": null, "doing_seconds": 0.0, "quiet_seconds": 0.0, "waits_for": "", "last_seq": 3, "ended": false}], "done": [], "abilities": ["resume", "teams"]}', '3667a8a94878', '[]');
INSERT INTO public.inbox VALUES ('b701ccfb7e9b', '5b36b6085f26', 'f45416c71d51', '{"kind": "confirm", "run_id": "f45416c71d51", "last_seq": 5}', '2026-11-22 16:35:02.342082+00', '2026-11-22 16:35:02.361621+00', NULL, '3667a8a94878');
INSERT INTO public.inbox VALUES ('672859f10b9b', '5b36b6085f26', 'f55347f669d8', '{"kind": "say", "run_id": "f55347f669d8", "text": "one more thing", "after": true, "interrupt": false}', '2026-11-22 16:35:02.614495+00', '2026-11-22 16:35:02.63491+00', NULL, '3667a8a94878');
INSERT INTO public.inbox VALUES ('0e3b8a816225', '5b36b6085f26', 'f55347f669d8', '{"kind": "confirm", "run_id": "f55347f669d8", "last_seq": 4}', '2026-11-22 16:35:02.702968+00', '2026-11-22 16:35:02.735256+00', NULL, '3667a8a94878');
INSERT INTO public.inbox VALUES ('12b9889af1c8', '5b36b6085f26', '8497a7fedce1', '{"kind": "confirm", "run_id": "8497a7fedce1", "last_seq": 4}', '2026-11-22 16:35:03.044677+00', '2026-11-22 16:35:03.056013+00', NULL, '3667a8a94878');
INSERT INTO public.inbox VALUES ('df2c82be3b87', '5b36b6085f26', 'aa26e88ab0cb', '{"kind": "confirm", "run_id": "aa26e88ab0cb", "last_seq": 4}', '2026-11-22 16:35:03.329749+00', '2026-11-22 16:35:03.339919+00', NULL, '3667a8a94878');
INSERT INTO public.inbox VALUES ('ee2a00f448d9', '5b36b6085f26', '1e5fe933d719', '{"kind": "cancel", "run_id": "1e5fe933d719", "generation": 1, "reason": "by kim: wrong branch: main"}', '2026-11-22 16:35:03.930424+00', '2026-11-22 16:35:03.937277+00', NULL, '3667a8a94878');
INSERT INTO public.inbox VALUES ('f3ce517ef3bf', '5b36b6085f26', '1e5fe933d719', '{"kind": "confirm", "run_id": "1e5fe933d719", "last_seq": 4}', '2026-11-22 16:35:03.986562+00', '2026-11-22 16:35:04.004283+00', NULL, '3667a8a94878');
INSERT INTO public.inbox VALUES ('fbc325d9c9aa', '5b36b6085f26', '030192147fee', '{"kind": "cancel", "run_id": "030192147fee", "generation": 1, "reason": "by system"}', '2026-11-22 16:35:04.190678+00', '2026-11-22 16:35:04.201022+00', NULL, '3667a8a94878');
INSERT INTO public.inbox VALUES ('8f768733cb6c', '5b36b6085f26', '030192147fee', '{"kind": "confirm", "run_id": "030192147fee", "last_seq": 4}', '2026-11-22 16:35:04.267262+00', '2026-11-22 16:35:04.279153+00', NULL, '3667a8a94878');
INSERT INTO public.inbox VALUES ('cdfac543ca6b', 'ea5831e289a4', 'b516d35ca842', '{"kind": "cancel", "run_id": "b516d35ca842", "generation": 1, "reason": "by kim: too slow"}', '2026-11-22 16:35:04.483426+00', '2026-11-22 16:35:04.511969+00', NULL, '3667a8a94878');
INSERT INTO public.inbox VALUES ('c8bcf4b47db4', '5b36b6085f26', '52c8a7e7fca6', '{"kind": "cancel", "run_id": "52c8a7e7fca6", "generation": 1, "reason": "by kim: changed my mind"}', '2026-11-22 16:35:04.818783+00', '2026-11-22 16:35:04.827047+00', NULL, '3667a8a94878');
INSERT INTO public.inbox VALUES ('4a586d6de4c5', '5b36b6085f26', '9308f9767888', '{"kind": "cancel", "run_id": "9308f9767888", "generation": 1, "reason": "by system"}', '2026-11-22 16:35:05.073323+00', '2026-11-22 16:35:05.087134+00', NULL, '3667a8a94878');
INSERT INTO public.inbox VALUES ('c309c18fc62f', '5b36b6085f26', 'd2a725f00a0a', '{"kind": "decide", "run_id": "d2a725f00a0a", "call_id": "c1", "approved": true, "comment": ""}', '2026-11-22 16:35:06.213382+00', '2026-11-22 16:35:06.241037+00', NULL, '3667a8a94878');
INSERT INTO public.inbox VALUES ('72d64c60e23d', 'ea5831e289a4', '9cdb248fdaf6', '{"kind": "confirm", "run_id": "9cdb248fdaf6", "last_seq": 2}', '2026-11-22 16:35:07.155826+00', '2026-11-22 16:35:07.202419+00', NULL, '3667a8a94878');
INSERT INTO public.inbox VALUES ('d456705b7aa7', '5b36b6085f26', '253fa5e0ee46', '{"kind": "confirm", "run_id": "253fa5e0ee46", "last_seq": 2}', '2026-11-22 16:35:08.404825+00', '2026-11-22 16:35:08.620147+00', NULL, '3667a8a94878');
INSERT INTO public.inbox VALUES ('92fa9922c480', '5b36b6085f26', 'a1863f46713c', '{"kind": "confirm", "run_id": "a1863f46713c", "last_seq": 2}', '2026-11-22 16:35:08.487858+00', '2026-11-22 16:35:08.620147+00', NULL, '3667a8a94878');
INSERT INTO public.inbox VALUES ('da8fe6e9b634', '5b36b6085f26', 'ea0435d54ec4', '{"kind": "confirm", "run_id": "ea0435d54ec4", "last_seq": 2}', '2026-11-22 16:35:08.554159+00', '2026-11-22 16:35:08.620147+00', NULL, '3667a8a94878');
INSERT INTO public.inbox VALUES ('cc3cff15dcaa', '5b36b6085f26', '99a211751c83', '{"kind": "confirm", "run_id": "99a211751c83", "last_seq": 2}', '2026-11-22 16:35:08.662982+00', '2026-11-22 16:35:08.76908+00', NULL, '3667a8a94878');
INSERT INTO public.inbox VALUES ('fad4a7dee22c', '5b36b6085f26', 'a1863f46713c', '{"kind": "confirm", "run_id": "a1863f46713c", "last_seq": 4}', '2026-11-22 16:35:08.678253+00', '2026-11-22 16:35:08.76908+00', NULL, '3667a8a94878');
INSERT INTO public.inbox VALUES ('84569cf3066c', '5b36b6085f26', 'ea0435d54ec4', '{"kind": "confirm", "run_id": "ea0435d54ec4", "last_seq": 4}', '2026-11-22 16:35:08.705018+00', '2026-11-22 16:35:08.76908+00', NULL, '3667a8a94878');
INSERT INTO public.inbox VALUES ('f76353404c55', '5b36b6085f26', '99a211751c83', '{"kind": "confirm", "run_id": "99a211751c83", "last_seq": 4}', '2026-11-22 16:35:08.723522+00', '2026-11-22 16:35:08.76908+00', NULL, '3667a8a94878');
INSERT INTO public.inbox VALUES ('44119f699905', '5b36b6085f26', '99a211751c83', '{"kind": "confirm", "run_id": "99a211751c83", "last_seq": 6}', '2026-11-22 16:35:08.76518+00', '2026-11-22 16:35:08.787122+00', NULL, '3667a8a94878');
INSERT INTO public.inbox VALUES ('e252fec26958', '5b36b6085f26', '99a211751c83', '{"kind": "confirm", "run_id": "99a211751c83", "last_seq": 8}', '2026-11-22 16:35:08.765812+00', '2026-11-22 16:35:08.787122+00', NULL, '3667a8a94878');
INSERT INTO public.inbox VALUES ('bd28e1ea2635', '5b36b6085f26', '45c01d4652fd', '{"kind": "confirm", "run_id": "45c01d4652fd", "last_seq": 5}', '2026-11-22 16:35:09.515793+00', '2026-11-22 16:35:09.539764+00', NULL, '3667a8a94878');
INSERT INTO public.inbox VALUES ('d2fd5b7a662e', '5b36b6085f26', 'a3e4155bb293', '{"kind": "confirm", "run_id": "a3e4155bb293", "last_seq": 4}', '2026-11-22 16:35:09.868913+00', '2026-11-22 16:35:09.901244+00', NULL, '3667a8a94878');
INSERT INTO public.inbox VALUES ('1eb993c8fdbf', '5b36b6085f26', '20ebf0f3089c', '{"kind": "confirm", "run_id": "20ebf0f3089c", "last_seq": 5}', '2026-11-22 16:35:10.277512+00', '2026-11-22 16:35:10.305305+00', NULL, '3667a8a94878');
INSERT INTO public.inbox VALUES ('35517845d1bc', '5b36b6085f26', 'a446794fd76d', '{"kind": "cancel", "run_id": "a446794fd76d", "generation": 1, "reason": "by kim: the task was canceled"}', '2026-11-22 16:35:10.659365+00', '2026-11-22 16:35:10.705109+00', NULL, '3667a8a94878');
INSERT INTO public.inbox VALUES ('eddff71ba952', '5b36b6085f26', 'e6ce8fe138f9', '{"kind": "confirm", "run_id": "e6ce8fe138f9", "last_seq": 4}', '2026-11-22 16:35:13.212895+00', NULL, NULL, '3667a8a94878');
INSERT INTO public.inbox VALUES ('b968bd6fa1cd', '5b36b6085f26', '1c2509ab4259', '{"kind": "confirm", "run_id": "1c2509ab4259", "last_seq": 4}', '2026-11-22 16:35:13.372951+00', NULL, NULL, '3667a8a94878');
INSERT INTO public.inbox VALUES ('2f40ca275a88', '5b36b6085f26', '80945b58b366', '{"kind": "confirm", "run_id": "80945b58b366", "last_seq": 7}', '2026-11-22 16:35:13.540314+00', NULL, NULL, '3667a8a94878');
INSERT INTO public.join_tokens VALUES ('5fb75262721b', '0c81f1c7e554820a1cd9223e06271fb730d35b64be384e31ee748f50d5e9f28a', '{}', 1, 1, '2026-11-22 16:35:01.105438+00', '2026-11-22 17:35:01.105438+00', NULL, '3667a8a94878', '[]');
INSERT INTO public.join_tokens VALUES ('2ca4419be890', '05e00135e07aa95de4cb1d2cc047056210c71163bd960e79921c3d09062a95c8', '{}', 1, 1, '2026-11-22 16:35:01.169216+00', '2026-11-22 17:35:01.169216+00', NULL, '3667a8a94878', '[]');
INSERT INTO public.join_tokens VALUES ('58be83676c1a', 'fd95ea70d6574efc5d076f6d6fa7fd82fab710bb19dab18a00299ce56205bf39', '{}', 1, 1, '2026-11-22 16:35:01.194245+00', '2026-11-22 17:35:01.194245+00', NULL, '3667a8a94878', '[]');
INSERT INTO public.join_tokens VALUES ('5f1e2f4e1d04', 'a69605a8deeadd22c8636e1585b152431d6430920c36fcc9ae1a9c3f0449ca69', '{}', 1, 1, '2026-11-22 16:35:01.209468+00', '2026-11-22 17:35:01.209468+00', NULL, '3667a8a94878', '[]');
INSERT INTO public.join_tokens VALUES ('3bb5d32326fb', '5ef1262659487f8f46345a43eebf51a62f29200e470d154e25f53da5694daeb5', '{}', 1, 1, '2026-11-22 16:35:01.230304+00', '2026-11-22 17:35:01.230304+00', NULL, '3667a8a94878', '[]');
INSERT INTO public.join_tokens VALUES ('693e13b199ac', '0bd82327e2db1c498079aeb5ac50d25dd674b1daa55f4f3d27986e02bd6a0a3b', '{}', 1, 1, '2026-11-22 16:35:01.241581+00', '2026-11-22 17:35:01.241581+00', NULL, '3667a8a94878', '[]');
INSERT INTO public.join_tokens VALUES ('116f6e2ac6ec', 'ffc838fc9849ecf73a44cc606ba4dd1a0d9d4c3590044c9e0f212db0d2ab0589', '{}', 1, 1, '2026-11-22 16:35:12.255447+00', '2026-11-22 17:35:12.255447+00', NULL, '3667a8a94878', '[]');
INSERT INTO public.key_pairs VALUES ('db2c330f42b245ec', 'zdq7cdeSeoH4WqUI7EUELVxNuFf56DErnkwNxaPkG3o=', 'u/sf5TlY26NI9uqzlIHhg0TNpcjgjqOxRw3zuL4g0eYEn9dbjK6na2k6D4TJ/2i0xNRtZBFAHOFHvet72xr2xmzc+XLITHEawt8Gr2IC5kN2JZ3Y', '2026-11-22 16:35:01.04863+00', NULL);
INSERT INTO public.orders VALUES ('ec9b47468bac', 2, 'system', 'bc95bfc6352a', '3c27f0fd46e9', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'succeeded unheard', NULL, NULL, '5b36b6085f26', '{}', '5b36b6085f26', 'f55347f669d8', 1, 1, 0, 3, NULL, 'succeeded', 'the model stopped; what a person said last came too late for it (next: fleet submit … --session 3c27f0fd46e9)', 'stopped', NULL, '2026-11-22 16:35:02.409681+00', '2026-11-22 16:35:02.53449+00', '2026-11-22 16:35:02.680356+00', 4, 'done', NULL, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', NULL, false, NULL, '[]', NULL, NULL, 0, NULL, 'null', '3667a8a94878', 0, 0, 'work', NULL, NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('36c0153031e2', 1, 'system', 'bc95bfc6352a', '3b307378665e', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'succeeded', NULL, NULL, '5b36b6085f26', '{}', '5b36b6085f26', 'f45416c71d51', 1, 1, 0, 3, NULL, 'succeeded', 'the model stopped', 'stopped', NULL, '2026-11-22 16:35:01.277567+00', '2026-11-22 16:35:02.090498+00', '2026-11-22 16:35:02.279487+00', 5, 'done', NULL, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', NULL, false, NULL, '[]', NULL, NULL, 0, NULL, 'null', '3667a8a94878', 0, 0, 'work', NULL, NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('e7400b589600', 3, 'system', 'bc95bfc6352a', '93e7028d2f83', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'failed', NULL, NULL, '5b36b6085f26', '{}', '5b36b6085f26', '8497a7fedce1', 1, 1, 0, 3, NULL, 'failed', 'The time limit of 1800 s was reached.', 'time_limit', NULL, '2026-11-22 16:35:02.761601+00', '2026-11-22 16:35:02.894067+00', '2026-11-22 16:35:03.028204+00', 4, 'done', NULL, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', NULL, false, NULL, '[]', NULL, NULL, 0, NULL, 'null', '3667a8a94878', 0, 0, 'work', NULL, NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('10a8b2e55c9f', 8, 'system', 'bc95bfc6352a', '5d8b5c4389f2', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'canceled after end', NULL, NULL, '5b36b6085f26', '{}', '5b36b6085f26', '030192147fee', 1, 1, 0, 3, NULL, 'canceled', 'canceled by system; it had just ended by itself: the model stopped', 'canceled', NULL, '2026-11-22 16:35:04.034358+00', '2026-11-22 16:35:04.112209+00', '2026-11-22 16:35:04.242301+00', 4, 'done', NULL, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', NULL, false, NULL, '[]', NULL, NULL, 0, NULL, '{"found": 0, "ended": 0, "survivors": 0, "at": "2026-11-22T16:35:04.239627Z", "unreachable_since": null}', '3667a8a94878', 0, 0, 'work', NULL, NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('4aa63176a5a6', 4, 'system', 'bc95bfc6352a', '3bc648835a55', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'failed last attempt', NULL, NULL, '5b36b6085f26', '{}', '5b36b6085f26', 'aa26e88ab0cb', 1, 1, 1, 1, NULL, 'failed', 'the provider cannot be reached; that was the last of 1 attempts', 'model_error', NULL, '2026-11-22 16:35:03.102684+00', '2026-11-22 16:35:03.233581+00', '2026-11-22 16:35:03.309406+00', 4, 'done', NULL, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', NULL, false, NULL, '[]', NULL, NULL, 0, NULL, 'null', '3667a8a94878', 0, 0, 'work', NULL, NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('2419d0664ae2', 6, 'system', 'bc95bfc6352a', '911f58f3973d', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'canceled before', NULL, NULL, NULL, '{"gpu": "yes"}', NULL, NULL, 0, 0, 0, 3, NULL, 'canceled', 'canceled by kim: not needed, before it began', 'canceled', NULL, '2026-11-22 16:35:03.676666+00', NULL, '2026-11-22 16:35:03.7122+00', 0, NULL, NULL, NULL, NULL, false, NULL, '[]', NULL, NULL, 0, NULL, '{"found": 0, "ended": 0, "survivors": 0, "at": "2026-11-22T16:35:03.712044Z", "unreachable_since": null}', '3667a8a94878', 0, 0, 'work', NULL, NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('4b7887e2b6c9', 5, 'system', 'bc95bfc6352a', '577ffeef1bb5', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'failed lost', NULL, NULL, 'ea5831e289a4', '{}', 'ea5831e289a4', '6d2e47585a32', 1, 1, 1, 1, NULL, 'failed', 'lost: drone ada was started again, and the run did not survive that; that was the last of 1 attempts', 'lost', NULL, '2026-11-22 16:35:03.384769+00', '2026-11-22 16:35:03.475654+00', '2026-11-22 16:35:03.584593+00', 3, NULL, NULL, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', NULL, false, NULL, '[]', NULL, NULL, 0, NULL, 'null', '3667a8a94878', 0, 0, 'work', NULL, NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('645ebd1ef8d4', 7, 'system', 'bc95bfc6352a', 'e97e85ce135a', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'canceled with receipt', NULL, NULL, '5b36b6085f26', '{}', '5b36b6085f26', '1e5fe933d719', 1, 1, 0, 3, NULL, 'canceled', 'canceled by kim: wrong branch: main', 'canceled', NULL, '2026-11-22 16:35:03.755861+00', '2026-11-22 16:35:03.832505+00', '2026-11-22 16:35:03.970961+00', 4, 'done', NULL, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', NULL, false, NULL, '[]', NULL, NULL, 0, NULL, '{"found": 0, "ended": 0, "survivors": 0, "at": "2026-11-22T16:35:03.969214Z", "unreachable_since": null}', '3667a8a94878', 0, 0, 'work', NULL, NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('4a65e719253a', 18, 'system', 'bc95bfc6352a', '2e5d18e41f74', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'session waits', NULL, NULL, NULL, '{}', NULL, NULL, 0, 0, 0, 3, NULL, 'queued', 'waits for order 0bec75227a4c of the same session', NULL, NULL, '2026-11-22 16:35:06.721172+00', NULL, NULL, 0, NULL, NULL, NULL, NULL, false, NULL, '[]', NULL, NULL, 0, NULL, NULL, '3667a8a94878', 0, 0, 'work', NULL, NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('296256c3a22c', 23, 'system', 'bc95bfc6352a', 'a7ca20f39b40', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'assigned busy', NULL, NULL, 'a964dc57ad8f', '{}', 'a964dc57ad8f', '86b761ae3a97', 1, 0, 0, 3, NULL, 'assigned', 'placed on mila: asked for by name; waits in mila''s queue: the drone is busy: 1 of 1 slots in use', NULL, NULL, '2026-11-22 16:35:07.608782+00', NULL, NULL, 0, NULL, NULL, NULL, NULL, false, NULL, '[]', NULL, NULL, 0, NULL, NULL, '3667a8a94878', 0, 0, 'work', NULL, NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('222369ad8c10', 10, 'system', 'bc95bfc6352a', 'bbad5aa3709c', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'canceling', NULL, NULL, '5b36b6085f26', '{}', '5b36b6085f26', '52c8a7e7fca6', 1, 1, 0, 3, NULL, 'canceling', 'cancel asked for by kim: changed my mind; waits for the drone''s receipt', NULL, NULL, '2026-11-22 16:35:04.596773+00', '2026-11-22 16:35:04.719024+00', NULL, 3, NULL, NULL, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', NULL, false, NULL, '[]', NULL, NULL, 0, NULL, NULL, '3667a8a94878', 0, 0, 'work', NULL, NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('5fef3a6de73c', 9, 'system', 'bc95bfc6352a', '0f74e352fac6', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'canceled with loss', NULL, NULL, 'ea5831e289a4', '{}', 'ea5831e289a4', 'b516d35ca842', 1, 1, 0, 3, NULL, 'canceled', 'canceled by kim: too slow; drone ada was started again, and the run did not survive that', 'canceled', NULL, '2026-11-22 16:35:04.313944+00', '2026-11-22 16:35:04.392682+00', '2026-11-22 16:35:04.518607+00', 3, NULL, NULL, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', NULL, false, NULL, '[]', NULL, NULL, 0, NULL, '{"found": 0, "ended": 0, "survivors": 0, "at": "2026-11-22T16:35:04.517491Z", "unreachable_since": null}', '3667a8a94878', 0, 0, 'work', NULL, NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('7303a72e605f', 12, 'system', 'bc95bfc6352a', 'a544eac00584', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'running', NULL, NULL, '5b36b6085f26', '{}', '5b36b6085f26', '5215c2912e2e', 1, 1, 0, 3, NULL, 'running', 'placed on oka: asked for by name', NULL, NULL, '2026-11-22 16:35:05.110528+00', '2026-11-22 16:35:05.255635+00', NULL, 3, NULL, NULL, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', NULL, false, NULL, '[]', NULL, NULL, 0, NULL, NULL, '3667a8a94878', 0, 0, 'work', NULL, NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('2424d8715b47', 11, 'system', 'bc95bfc6352a', '37ebda9a4eed', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'canceling unnamed', NULL, NULL, '5b36b6085f26', '{}', '5b36b6085f26', '9308f9767888', 1, 1, 0, 3, NULL, 'canceling', 'cancel asked for by system; waits for the drone''s receipt', NULL, NULL, '2026-11-22 16:35:04.867269+00', '2026-11-22 16:35:04.954061+00', NULL, 3, NULL, NULL, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', NULL, false, NULL, '[]', NULL, NULL, 0, NULL, NULL, '3667a8a94878', 0, 0, 'work', NULL, NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('2ab6e2d69f5a', 21, 'system', 'bc95bfc6352a', 'a29b73fc2177', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'assigned never started', NULL, NULL, '871f87fa8876', '{}', '871f87fa8876', '182ab96c43ea', 1, 0, 0, 3, NULL, 'assigned', 'placed on dora: asked for by name; waits in dora''s queue: the drone was registered but never started (next: drone start)', NULL, NULL, '2026-11-22 16:35:07.238097+00', NULL, NULL, 0, NULL, NULL, NULL, NULL, false, NULL, '[]', NULL, NULL, 0, NULL, NULL, '3667a8a94878', 0, 0, 'work', NULL, NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('0bec75227a4c', 13, 'system', 'bc95bfc6352a', '2e5d18e41f74', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'running free choice', NULL, NULL, NULL, '{}', 'ea5831e289a4', 'da50185027d1', 1, 1, 0, 3, NULL, 'running', 'placed on ada: has the repository already, and a free slot', NULL, NULL, '2026-11-22 16:35:05.346902+00', '2026-11-22 16:35:05.430909+00', NULL, 3, NULL, NULL, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', NULL, false, NULL, '[]', NULL, NULL, 0, NULL, NULL, '3667a8a94878', 0, 0, 'work', NULL, NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('9a50416c5b6b', 16, 'system', 'bc95bfc6352a', '4e95242834b4', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'answered', NULL, NULL, '5b36b6085f26', '{}', '5b36b6085f26', '99adde2afb54', 1, 1, 0, 3, NULL, 'running', 'goes on: a person approved the call that waited', NULL, NULL, '2026-11-22 16:35:06.227165+00', '2026-11-22 16:35:06.351895+00', NULL, 5, NULL, NULL, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', NULL, false, NULL, '[]', NULL, NULL, 0, NULL, NULL, '3667a8a94878', 0, 0, 'work', NULL, NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('ba176254edc5', 22, 'system', 'bc95bfc6352a', '6f8e0646c156', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'mila runs', NULL, NULL, 'a964dc57ad8f', '{}', 'a964dc57ad8f', 'c6830274a323', 1, 1, 0, 3, NULL, 'running', 'placed on mila: asked for by name', NULL, NULL, '2026-11-22 16:35:07.290329+00', '2026-11-22 16:35:07.525683+00', NULL, 3, NULL, NULL, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', NULL, false, NULL, '[]', NULL, NULL, 0, NULL, NULL, '3667a8a94878', 0, 0, 'work', NULL, NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('b6d56b057b83', 14, 'system', 'bc95bfc6352a', '6209da28d6bd', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'awaiting', NULL, NULL, '5b36b6085f26', '{}', '5b36b6085f26', '144d8fe376c4', 1, 1, 0, 3, NULL, 'awaiting_approval', 'waits for a person: may shell be run? It changes files: rm x. (next: fleet approve b6d56b057b83, or fleet deny b6d56b057b83)', NULL, NULL, '2026-11-22 16:35:05.511682+00', '2026-11-22 16:35:05.599464+00', NULL, 4, NULL, NULL, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', NULL, false, NULL, '[]', NULL, NULL, 0, NULL, NULL, '3667a8a94878', 0, 0, 'work', NULL, NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('0fe2bb7f3f4b', 19, 'system', 'bc95bfc6352a', '82f4f93eb75d', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'named removed', NULL, NULL, '58c849766fa4', '{}', NULL, NULL, 1, 0, 0, 3, NULL, 'queued', 'drone sale, which was asked for by name, was removed (next: fleet cancel 0fe2bb7f3f4b)', NULL, NULL, '2026-11-22 16:35:06.746233+00', NULL, NULL, 0, NULL, NULL, NULL, NULL, false, NULL, '[]', NULL, NULL, 0, NULL, NULL, '3667a8a94878', 0, 0, 'work', NULL, NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('8e7bdac3ad93', 37, 'system', 'bc95bfc6352a', '75437ce69a23', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'queued from checkpoint', NULL, NULL, '5b36b6085f26', '{}', NULL, NULL, 1, 1, 1, 3, NULL, 'queued', 'the provider cannot be reached; queued again (attempt 1 of 3 ended so); goes on from step 6', NULL, NULL, '2026-11-22 16:35:11.625602+00', '2026-11-22 16:35:11.773754+00', NULL, 7, NULL, NULL, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', NULL, false, NULL, '[]', NULL, NULL, 0, NULL, NULL, '3667a8a94878', 0, 0, 'work', NULL, NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('3d28fb9e09cf', 39, 'system', 'bc95bfc6352a', '83075a0d29b2', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'taken back removed', NULL, NULL, '09c0f22bba5d', '{}', NULL, NULL, 1, 0, 0, 3, NULL, 'queued', 'taken back from lena: the drone was removed', NULL, NULL, '2026-11-22 16:35:12.335575+00', NULL, NULL, 0, NULL, NULL, NULL, NULL, false, NULL, '[]', NULL, NULL, 0, NULL, NULL, '3667a8a94878', 0, 0, 'work', NULL, NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('55499c0ca08f', 40, 'system', 'bc95bfc6352a', 'e4ae69c9462f', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'none takes work', NULL, NULL, NULL, '{"none": "here"}', NULL, NULL, 0, 0, 0, 3, NULL, 'queued', 'no drone has label none=here; labels are ada: os=linux; dora: none; mila: none; nino: os=linux; oka: none', NULL, NULL, '2026-11-22 16:35:13.805376+00', NULL, NULL, 0, NULL, NULL, NULL, NULL, false, NULL, '[]', NULL, NULL, 0, NULL, NULL, '3667a8a94878', 0, 0, 'work', NULL, NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('57e38a378640', 36, 'system', 'bc95bfc6352a', '8dbf3326f0f7', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'queued again', NULL, NULL, '5b36b6085f26', '{}', NULL, NULL, 1, 1, 1, 3, NULL, 'queued', 'the provider cannot be reached; queued again (attempt 1 of 3 ended so); begins anew: no checkpoint was stored', NULL, NULL, '2026-11-22 16:35:11.339276+00', '2026-11-22 16:35:11.468751+00', NULL, 4, NULL, NULL, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', NULL, false, NULL, '[]', NULL, NULL, 0, NULL, NULL, '3667a8a94878', 0, 0, 'work', NULL, NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('de73310ab6c5', 15, 'system', 'bc95bfc6352a', '0a25acef4e6b', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'answer on its way', NULL, NULL, '5b36b6085f26', '{}', '5b36b6085f26', 'd2a725f00a0a', 1, 1, 0, 3, NULL, 'awaiting_approval', 'kim approved the call of shell; its drone is being told', NULL, NULL, '2026-11-22 16:35:05.804741+00', '2026-11-22 16:35:05.952537+00', NULL, 4, NULL, NULL, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', NULL, false, NULL, '[]', NULL, NULL, 0, NULL, NULL, '3667a8a94878', 0, 0, 'work', NULL, NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('dc368d896734', 25, 'kim', 'bc95bfc6352a', '0fe2c90fe779', '59fbfb39fc9e', 'openai/scripted', 'plan', -10, 'yolo', '[]', '{"max_iterations": 5, "cost_limit": 0.5, "token_limit": 0, "max_run_seconds": 300.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'Describe agent lead from its instructions.', NULL, NULL, NULL, '{}', '5b36b6085f26', '253fa5e0ee46', 1, 1, 0, 3, NULL, 'succeeded', 'the model stopped', 'stopped', NULL, '2026-11-22 16:35:08.063991+00', '2026-11-22 16:35:08.318963+00', '2026-11-22 16:35:08.376503+00', 2, 'It works.', NULL, NULL, NULL, false, NULL, '[]', NULL, NULL, 0, NULL, 'null', '3667a8a94878', 0, 0, 'describe', '{"agent": "lead", "instructions": "Work.", "instructions_path": null}', NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('ed3afa217608', 20, 'system', 'bc95bfc6352a', '55e8df57cb3c', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'pausing', NULL, NULL, NULL, '{}', NULL, NULL, 1, 1, 1, 3, NULL, 'queued', 'tried again at 17:35:07 UTC (attempt 1 of 3: the repository cannot be reached)', NULL, NULL, '2026-11-22 16:35:06.930599+00', '2026-11-22 16:35:07.113728+00', NULL, 2, NULL, NULL, NULL, NULL, false, NULL, '[]', NULL, NULL, 0, NULL, NULL, '3667a8a94878', 0, 0, 'work', NULL, NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('29705fc01236', 17, 'system', 'bc95bfc6352a', '4c6cc722fc79', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'no drone fits', NULL, NULL, NULL, '{"gpu": "yes"}', NULL, NULL, 0, 0, 0, 3, NULL, 'queued', 'no drone has label gpu=yes; labels are ada: os=linux; dora: none; lena: none; mila: none; nino: os=linux; oka: none', NULL, NULL, '2026-11-22 16:35:06.687886+00', NULL, NULL, 0, NULL, NULL, NULL, NULL, false, NULL, '[]', NULL, NULL, 0, NULL, NULL, '3667a8a94878', 0, 0, 'work', NULL, NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('9df42cfdb215', 24, 'system', 'bc95bfc6352a', '173b8fa72e92', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'taken back', NULL, NULL, NULL, '{"os": "linux"}', 'ea5831e289a4', '733b7db09ecf', 2, 0, 0, 3, NULL, 'assigned', 'taken back from nino: the drone is draining (next: fleet drone resume nino); placed on ada: has os=linux, the only drone that fits and takes work', NULL, NULL, '2026-11-22 16:35:07.720559+00', NULL, NULL, 0, NULL, NULL, NULL, NULL, false, NULL, '[]', NULL, NULL, 0, NULL, NULL, '3667a8a94878', 0, 0, 'work', NULL, NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('217db09d1dc0', 31, 'kim', 'bc95bfc6352a', '458a9f3e5f57', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', '# Task DEFA-0003: failed
Organization: default
Assigned to: free (you)
Opened: 2026-11-22 16:35:09 UTC by kim
## Description
  failed
## Thread
[Nobody has written a comment yet.]
## Your turn
It is your turn on this task, free. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.
When your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.
Budget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.', NULL, NULL, NULL, '{}', '5b36b6085f26', 'a3e4155bb293', 1, 1, 0, 3, NULL, 'failed', 'The time limit was reached.', 'time_limit', NULL, '2026-11-22 16:35:09.576542+00', '2026-11-22 16:35:09.686455+00', '2026-11-22 16:35:09.820386+00', 4, 'done', NULL, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', NULL, false, NULL, '[]', NULL, NULL, 0, NULL, 'null', '3667a8a94878', 0, 0, 'work', 'null', 'e088edc19c4d', 'DEFA-0003', NULL);
INSERT INTO public.orders VALUES ('b78fba58bd67', 33, 'kim', 'bc95bfc6352a', 'b0de3a1d5990', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', '# Task DEFA-0005: canceled
Organization: default
Assigned to: free (you)
Opened: 2026-11-22 16:35:10 UTC by kim
## Description
  canceled
## Thread
[Nobody has written a comment yet.]
## Your turn
It is your turn on this task, free. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.
When your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.
Budget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.', NULL, NULL, NULL, '{}', '5b36b6085f26', 'a446794fd76d', 1, 1, 0, 3, NULL, 'canceling', 'cancel asked for by kim: the task was canceled; waits for the drone''s receipt', NULL, NULL, '2026-11-22 16:35:10.442485+00', '2026-11-22 16:35:10.556897+00', NULL, 3, NULL, NULL, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', NULL, false, NULL, '[]', NULL, NULL, 0, NULL, NULL, '3667a8a94878', 0, 0, 'work', 'null', 'e088edc19c4d', 'DEFA-0005', NULL);
INSERT INTO public.orders VALUES ('1ac64cb39332', 27, 'kim', 'bc95bfc6352a', '5190041c57ba', '59fbfb39fc9e', 'openai/scripted', 'plan', -10, 'yolo', '[]', '{"max_iterations": 5, "cost_limit": 0.5, "token_limit": 0, "max_run_seconds": 300.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'Describe agent free from its instructions.', NULL, NULL, NULL, '{}', '5b36b6085f26', 'ea0435d54ec4', 1, 1, 0, 3, NULL, 'succeeded', 'the model stopped', 'stopped', NULL, '2026-11-22 16:35:08.197038+00', '2026-11-22 16:35:08.503847+00', '2026-11-22 16:35:08.533799+00', 4, 'It works.', NULL, NULL, NULL, false, NULL, '[]', NULL, NULL, 0, NULL, 'null', '3667a8a94878', 0, 0, 'describe', '{"agent": "free", "instructions": "Work.", "instructions_path": null}', NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('d62d95672988', 38, 'system', 'bc95bfc6352a', 'f316eadbbf1d', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'withdrawn', NULL, NULL, '5b36b6085f26', '{}', '5b36b6085f26', '491246414342', 1, 1, 0, 3, NULL, 'running', 'placed on oka: asked for by name', NULL, NULL, '2026-11-22 16:35:11.870562+00', '2026-11-22 16:35:12.069245+00', NULL, 3, NULL, NULL, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', NULL, false, NULL, '[]', NULL, NULL, 0, NULL, NULL, '3667a8a94878', 0, 0, 'work', NULL, NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('46d232210058', 28, 'kim', 'bc95bfc6352a', '18f6733054ee', '59fbfb39fc9e', 'openai/scripted', 'plan', -10, 'yolo', '[]', '{"max_iterations": 5, "cost_limit": 0.5, "token_limit": 0, "max_run_seconds": 300.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'Describe agent solo from its instructions.', NULL, NULL, NULL, '{}', '5b36b6085f26', '99a211751c83', 1, 1, 0, 3, NULL, 'succeeded', 'the model stopped', 'stopped', NULL, '2026-11-22 16:35:08.248206+00', '2026-11-22 16:35:08.615144+00', '2026-11-22 16:35:08.637748+00', 8, 'It works.', NULL, NULL, NULL, false, NULL, '[]', NULL, NULL, 0, NULL, 'null', '3667a8a94878', 0, 0, 'describe', '{"agent": "solo", "instructions": "Work.", "instructions_path": null}', NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('df9a5aeb230e', 26, 'kim', 'bc95bfc6352a', '36eb83b7afcf', '59fbfb39fc9e', 'openai/scripted', 'plan', -10, 'yolo', '[]', '{"max_iterations": 5, "cost_limit": 0.5, "token_limit": 0, "max_run_seconds": 300.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'Describe agent backend from its instructions.', NULL, NULL, NULL, '{}', '5b36b6085f26', 'a1863f46713c', 1, 1, 0, 3, NULL, 'succeeded', 'the model stopped', 'stopped', NULL, '2026-11-22 16:35:08.146757+00', '2026-11-22 16:35:08.420944+00', '2026-11-22 16:35:08.469233+00', 4, 'It works.', NULL, NULL, NULL, false, NULL, '[]', NULL, NULL, 0, NULL, 'null', '3667a8a94878', 0, 0, 'describe', '{"agent": "backend", "instructions": "Work.", "instructions_path": null}', NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('d1c963a0242e', 29, 'kim', 'bc95bfc6352a', '27b242e8e115', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', '# Task DEFA-0001: in progress
Organization: default
Assigned to: lead (you)
Opened: 2026-11-22 16:35:08 UTC by kim
## Description
  in progress
## Thread
[Nobody has written a comment yet.]
## Your turn
It is your turn on this task, lead. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.
When your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.
Budget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.', NULL, NULL, NULL, '{}', '5b36b6085f26', '52fc5d451ee4', 1, 1, 0, 3, NULL, 'running', 'placed on oka: has the repository already, and a free slot', NULL, NULL, '2026-11-22 16:35:08.842023+00', '2026-11-22 16:35:08.997904+00', NULL, 3, NULL, NULL, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', NULL, false, NULL, '[]', NULL, NULL, 0, NULL, NULL, '3667a8a94878', 0, 0, 'work', 'null', '39b2d9dbd30f', 'DEFA-0001', NULL);
INSERT INTO public.orders VALUES ('dda8fb983f5c', 34, 'kim', 'bc95bfc6352a', 'd3cbe6704968', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', '# Task DEFA-0006: holds solo
Organization: default
Assigned to: solo (you)
Opened: 2026-11-22 16:35:10 UTC by kim
## Description
  holds solo
## Thread
[Nobody has written a comment yet.]
## Your turn
It is your turn on this task, solo. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.
When your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.
Budget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.', NULL, NULL, NULL, '{}', '5b36b6085f26', '2fbf5171c9e9', 1, 1, 0, 3, NULL, 'running', 'placed on oka: has the repository already, and a free slot', NULL, NULL, '2026-11-22 16:35:10.745193+00', '2026-11-22 16:35:10.938471+00', NULL, 3, NULL, NULL, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', NULL, false, NULL, '[]', NULL, NULL, 0, NULL, NULL, '3667a8a94878', 0, 0, 'work', 'null', '8ddab2770598', 'DEFA-0006', NULL);
INSERT INTO public.orders VALUES ('88728768c997', 30, 'kim', 'bc95bfc6352a', '071b417b6ba6', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', '# Task DEFA-0002: with the user
Organization: default
Assigned to: free (you)
Opened: 2026-11-22 16:35:09 UTC by kim
## Description
  with the user
## Thread
[Nobody has written a comment yet.]
## Your turn
It is your turn on this task, free. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.
When your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.
Budget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.', NULL, NULL, NULL, '{}', '5b36b6085f26', '45c01d4652fd', 1, 1, 0, 3, NULL, 'succeeded', 'the model stopped', 'stopped', NULL, '2026-11-22 16:35:09.126417+00', '2026-11-22 16:35:09.248985+00', '2026-11-22 16:35:09.463349+00', 5, 'done', NULL, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', NULL, false, NULL, '[]', NULL, NULL, 0, NULL, 'null', '3667a8a94878', 0, 0, 'work', 'null', 'e088edc19c4d', 'DEFA-0002', NULL);
INSERT INTO public.orders VALUES ('63b7768e7140', 35, 'system', 'bc95bfc6352a', 'ef52ecdd9bd0', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', 'given back', NULL, NULL, '5b36b6085f26', '{}', NULL, NULL, 1, 1, 0, 3, NULL, 'queued', 'given back by oka: the drone stops; begins anew: no checkpoint was stored', NULL, NULL, '2026-11-22 16:35:11.099603+00', '2026-11-22 16:35:11.23314+00', NULL, 4, NULL, NULL, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', NULL, false, NULL, '[]', NULL, NULL, 0, NULL, NULL, '3667a8a94878', 0, 0, 'work', NULL, NULL, NULL, NULL);
INSERT INTO public.orders VALUES ('8bc3596c1222', 32, 'kim', 'bc95bfc6352a', '2df63b528d70', '59fbfb39fc9e', 'openai/scripted', 'build', 0, 'yolo', '[]', '{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}', '# Task DEFA-0004: done
Organization: default
Assigned to: free (you)
Opened: 2026-11-22 16:35:09 UTC by kim
## Description
  done
## Thread
[Nobody has written a comment yet.]
## Your turn
It is your turn on this task, free. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.
When your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.
Budget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.', NULL, NULL, NULL, '{}', '5b36b6085f26', '20ebf0f3089c', 1, 1, 0, 3, NULL, 'succeeded', 'the model stopped', 'stopped', NULL, '2026-11-22 16:35:09.932363+00', '2026-11-22 16:35:10.066193+00', '2026-11-22 16:35:10.204328+00', 5, 'done', NULL, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', NULL, false, NULL, '[]', NULL, NULL, 0, NULL, 'null', '3667a8a94878', 0, 0, 'work', 'null', 'e088edc19c4d', 'DEFA-0004', NULL);
INSERT INTO public.organizations VALUES ('3667a8a94878', 'default', '', '2026-11-22 16:35:00.6057+00', 'DEFA', 7, NULL, 4, 20, NULL);
INSERT INTO public.projects VALUES ('bc95bfc6352a', 'app', 'app', 'https://git.example/app.git', NULL, NULL, '[]', '[]', NULL, NULL, '2026-11-22 16:35:01.065815+00', NULL, '3667a8a94878', 'never', '[]');
INSERT INTO public.providers VALUES ('59fbfb39fc9e', 'scripted', 'openai/scripted', NULL, 0, 'auto', '{}', '[]', 'R1/jvVc0pdCSpGGvbeMJe5G4RDfc02+53RdRBAi53Jp0oDXGK/O6mp12Gy8Ezr9T+w==', NULL, '2026-11-22 16:35:01.0585+00', NULL, '3667a8a94878');
INSERT INTO public.runs VALUES ('99a211751c83', '46d232210058', '5b36b6085f26', 1, 1, 'success', 'stopped', 'the model stopped', true, '0c0552d9680a', 'none', '2026-11-22 16:35:08.586196+00', '2026-11-22 16:35:08.626737+00', NULL, '', 8, 0, 0, 0, 0, 0, 0, '3667a8a94878', NULL, NULL, '', NULL, 0, NULL, NULL);
INSERT INTO public.runs VALUES ('6d2e47585a32', '4b7887e2b6c9', 'ea5831e289a4', 1, 1, 'lost', 'lost', 'drone ada was started again, and the run did not survive that', false, 'e698fcc84b23', 'none', '2026-11-22 16:35:03.464957+00', '2026-11-22 16:35:03.580203+00', '2026-11-22 16:35:03.550437+00', '', 3, 0, 0, 0, 0, 0, 0, '3667a8a94878', '2026-11-22 16:35:03.490382+00', '2026-11-22 16:35:03.550437+00', '', NULL, 0, NULL, NULL);
INSERT INTO public.runs VALUES ('52c8a7e7fca6', '222369ad8c10', '5b36b6085f26', 1, 1, 'running', NULL, '', false, '0c0552d9680a', 'none', '2026-11-22 16:35:04.709242+00', NULL, '2026-11-22 16:35:13.818481+00', '', 3, 0, 0, 0, 0, 0, 0, '3667a8a94878', '2026-11-22 16:35:04.745165+00', '2026-11-22 16:35:13.818481+00', '', NULL, 0, NULL, NULL);
INSERT INTO public.runs VALUES ('f45416c71d51', '36c0153031e2', '5b36b6085f26', 1, 1, 'success', 'stopped', 'the model stopped', false, '0c0552d9680a', 'none', '2026-11-22 16:35:02.060206+00', '2026-11-22 16:35:02.253153+00', '2026-11-22 16:35:02.208815+00', '', 5, 0, 5, 0, 0, 0.01, 0, '3667a8a94878', '2026-11-22 16:35:02.129598+00', '2026-11-22 16:35:02.208815+00', '', NULL, 0, NULL, NULL);
INSERT INTO public.runs VALUES ('a446794fd76d', 'b78fba58bd67', '5b36b6085f26', 1, 1, 'running', NULL, '', false, '0c0552d9680a', 'none', '2026-11-22 16:35:10.545778+00', NULL, '2026-11-22 16:35:13.89299+00', '', 3, 0, 0, 0, 0, 0, 0, '3667a8a94878', '2026-11-22 16:35:10.711565+00', '2026-11-22 16:35:13.89299+00', '', NULL, 0, 'e088edc19c4d', 'DEFA-0005');
INSERT INTO public.runs VALUES ('1e5fe933d719', '645ebd1ef8d4', '5b36b6085f26', 1, 1, 'preempted', 'canceled', 'canceled', false, '0c0552d9680a', 'none', '2026-11-22 16:35:03.826746+00', '2026-11-22 16:35:03.964421+00', '2026-11-22 16:35:03.90822+00', '', 4, 0, 0, 0, 0, 0, 0, '3667a8a94878', '2026-11-22 16:35:03.874165+00', '2026-11-22 16:35:03.90822+00', '', NULL, 0, NULL, NULL);
INSERT INTO public.runs VALUES ('f55347f669d8', 'ec9b47468bac', '5b36b6085f26', 1, 1, 'success', 'stopped', 'the model stopped', false, '0c0552d9680a', 'none', '2026-11-22 16:35:02.508778+00', '2026-11-22 16:35:02.663554+00', '2026-11-22 16:35:02.607358+00', '', 4, 0, 0, 0, 0, 0, 0, '3667a8a94878', '2026-11-22 16:35:02.607358+00', '2026-11-22 16:35:02.607358+00', '', NULL, 0, NULL, NULL);
INSERT INTO public.runs VALUES ('8497a7fedce1', 'e7400b589600', '5b36b6085f26', 1, 1, 'failed', 'time_limit', 'The time limit of 1800 s was reached.', false, '0c0552d9680a', 'none', '2026-11-22 16:35:02.882704+00', '2026-11-22 16:35:03.011515+00', '2026-11-22 16:35:02.984837+00', '', 4, 0, 0, 0, 0, 0, 0, '3667a8a94878', '2026-11-22 16:35:02.919926+00', '2026-11-22 16:35:02.984837+00', '', NULL, 0, NULL, NULL);
INSERT INTO public.runs VALUES ('030192147fee', '10a8b2e55c9f', '5b36b6085f26', 1, 1, 'success', 'stopped', 'the model stopped', false, '0c0552d9680a', 'none', '2026-11-22 16:35:04.088411+00', '2026-11-22 16:35:04.228799+00', '2026-11-22 16:35:04.170624+00', '', 4, 0, 0, 0, 0, 0, 0, '3667a8a94878', '2026-11-22 16:35:04.149159+00', '2026-11-22 16:35:04.170624+00', '', NULL, 0, NULL, NULL);
INSERT INTO public.runs VALUES ('aa26e88ab0cb', '4aa63176a5a6', '5b36b6085f26', 1, 1, 'failed', 'model_error', 'the provider cannot be reached', false, '0c0552d9680a', 'none', '2026-11-22 16:35:03.215474+00', '2026-11-22 16:35:03.296869+00', '2026-11-22 16:35:03.281672+00', '', 4, 0, 0, 0, 0, 0, 0, '3667a8a94878', '2026-11-22 16:35:03.234751+00', '2026-11-22 16:35:03.281672+00', '', NULL, 0, NULL, NULL);
INSERT INTO public.runs VALUES ('b516d35ca842', '5fef3a6de73c', 'ea5831e289a4', 1, 1, 'lost', 'lost', 'drone ada was started again, and the run did not survive that', false, '9c7923c0f8f1', 'none', '2026-11-22 16:35:04.374469+00', '2026-11-22 16:35:04.513735+00', '2026-11-22 16:35:04.467579+00', '', 3, 0, 0, 0, 0, 0, 0, '3667a8a94878', '2026-11-22 16:35:04.398653+00', '2026-11-22 16:35:04.467579+00', '', NULL, 0, NULL, NULL);
INSERT INTO public.runs VALUES ('e6ce8fe138f9', '63b7768e7140', '5b36b6085f26', 1, 1, 'preempted', 'canceled', 'the drone stops', false, '0c0552d9680a', 'none', '2026-11-22 16:35:11.211456+00', '2026-11-22 16:35:13.189497+00', '2026-11-22 16:35:13.116185+00', '', 4, 0, 0, 0, 0, 0, 0, '3667a8a94878', '2026-11-22 16:35:11.356367+00', '2026-11-22 16:35:13.116185+00', '', NULL, 0, NULL, NULL);
INSERT INTO public.runs VALUES ('a1863f46713c', 'df9a5aeb230e', '5b36b6085f26', 1, 1, 'success', 'stopped', 'the model stopped', true, '0c0552d9680a', 'none', '2026-11-22 16:35:08.348818+00', '2026-11-22 16:35:08.458911+00', NULL, '', 4, 0, 0, 0, 0, 0, 0, '3667a8a94878', NULL, NULL, '', NULL, 0, NULL, NULL);
INSERT INTO public.runs VALUES ('9cdb248fdaf6', 'ed3afa217608', 'ea5831e289a4', 1, 1, 'failed', 'refused', 'the repository cannot be reached', false, 'e431a14d469f', 'none', '2026-11-22 16:35:07.100701+00', '2026-11-22 16:35:07.143092+00', NULL, '', 2, 0, 0, 0, 0, 0, 0, '3667a8a94878', NULL, NULL, '', NULL, 0, NULL, NULL);
INSERT INTO public.runs VALUES ('253fa5e0ee46', 'dc368d896734', '5b36b6085f26', 1, 1, 'success', 'stopped', 'the model stopped', false, '0c0552d9680a', 'none', '2026-11-22 16:35:08.306039+00', '2026-11-22 16:35:08.358624+00', NULL, '', 2, 0, 0, 0, 0, 0, 0, '3667a8a94878', NULL, NULL, '', NULL, 0, NULL, NULL);
INSERT INTO public.runs VALUES ('c6830274a323', 'ba176254edc5', 'a964dc57ad8f', 1, 1, 'running', NULL, '', false, 'e8997c6b37dd', 'none', '2026-11-22 16:35:07.505551+00', NULL, '2026-11-22 16:35:13.797333+00', '', 3, 0, 0, 0, 0, 0, 0, '3667a8a94878', '2026-11-22 16:35:07.618963+00', '2026-11-22 16:35:13.797333+00', '', NULL, 0, NULL, NULL);
INSERT INTO public.runs VALUES ('144d8fe376c4', 'b6d56b057b83', '5b36b6085f26', 1, 1, 'running', NULL, '', false, '0c0552d9680a', 'none', '2026-11-22 16:35:05.589563+00', NULL, '2026-11-22 16:35:13.871202+00', '', 4, 0, 0, 0, 0, 0, 0, '3667a8a94878', '2026-11-22 16:35:05.62781+00', '2026-11-22 16:35:13.871202+00', '', NULL, 0, NULL, NULL);
INSERT INTO public.runs VALUES ('d2a725f00a0a', 'de73310ab6c5', '5b36b6085f26', 1, 1, 'running', NULL, '', false, '0c0552d9680a', 'none', '2026-11-22 16:35:05.939151+00', NULL, '2026-11-22 16:35:13.87709+00', '', 4, 0, 0, 0, 0, 0, 0, '3667a8a94878', '2026-11-22 16:35:06.010392+00', '2026-11-22 16:35:13.87709+00', '', NULL, 0, NULL, NULL);
INSERT INTO public.runs VALUES ('99adde2afb54', '9a50416c5b6b', '5b36b6085f26', 1, 1, 'running', NULL, '', false, '0c0552d9680a', 'none', '2026-11-22 16:35:06.334894+00', NULL, '2026-11-22 16:35:13.879019+00', '', 5, 0, 0, 0, 0, 0, 0, '3667a8a94878', '2026-11-22 16:35:06.440703+00', '2026-11-22 16:35:13.879019+00', '', NULL, 0, NULL, NULL);
INSERT INTO public.runs VALUES ('491246414342', 'd62d95672988', '5b36b6085f26', 1, 1, 'running', NULL, '', false, '0c0552d9680a', 'none', '2026-11-22 16:35:12.059867+00', NULL, '2026-11-22 16:35:13.899652+00', '', 3, 0, 0, 0, 0, 0, 0, '3667a8a94878', '2026-11-22 16:35:12.19651+00', '2026-11-22 16:35:13.899652+00', '', NULL, 0, NULL, NULL);
INSERT INTO public.runs VALUES ('a3e4155bb293', '217db09d1dc0', '5b36b6085f26', 1, 1, 'failed', 'time_limit', 'The time limit was reached.', false, '0c0552d9680a', 'none', '2026-11-22 16:35:09.674232+00', '2026-11-22 16:35:09.812266+00', '2026-11-22 16:35:09.982298+00', '', 4, 0, 0, 0, 0, 0, 0, '3667a8a94878', '2026-11-22 16:35:09.816356+00', '2026-11-22 16:35:09.816356+00', '', NULL, 0, 'e088edc19c4d', 'DEFA-0003');
INSERT INTO public.runs VALUES ('45c01d4652fd', '88728768c997', '5b36b6085f26', 1, 1, 'success', 'stopped', 'the model stopped', false, '0c0552d9680a', 'none', '2026-11-22 16:35:09.226845+00', '2026-11-22 16:35:09.439206+00', '2026-11-22 16:35:09.466882+00', '', 5, 0, 0, 0, 0, 0, 0, '3667a8a94878', '2026-11-22 16:35:09.340018+00', '2026-11-22 16:35:09.466882+00', '', NULL, 0, 'e088edc19c4d', 'DEFA-0002');
INSERT INTO public.runs VALUES ('9308f9767888', '2424d8715b47', '5b36b6085f26', 1, 1, 'running', NULL, '', false, '0c0552d9680a', 'none', '2026-11-22 16:35:04.937584+00', NULL, '2026-11-22 16:35:13.831835+00', '', 3, 0, 0, 0, 0, 0, 0, '3667a8a94878', '2026-11-22 16:35:05.013255+00', '2026-11-22 16:35:13.831835+00', '', NULL, 0, NULL, NULL);
INSERT INTO public.runs VALUES ('5215c2912e2e', '7303a72e605f', '5b36b6085f26', 1, 1, 'running', NULL, '', false, '0c0552d9680a', 'none', '2026-11-22 16:35:05.237279+00', NULL, '2026-11-22 16:35:13.853635+00', '', 3, 0, 0, 0, 0, 0, 0, '3667a8a94878', '2026-11-22 16:35:05.296572+00', '2026-11-22 16:35:13.853635+00', '', NULL, 0, NULL, NULL);
INSERT INTO public.runs VALUES ('ea0435d54ec4', '1ac64cb39332', '5b36b6085f26', 1, 1, 'success', 'stopped', 'the model stopped', true, '0c0552d9680a', 'none', '2026-11-22 16:35:08.348818+00', '2026-11-22 16:35:08.522776+00', NULL, '', 4, 0, 0, 0, 0, 0, 0, '3667a8a94878', NULL, NULL, '', NULL, 0, NULL, NULL);
INSERT INTO public.runs VALUES ('1c2509ab4259', '57e38a378640', '5b36b6085f26', 1, 1, 'failed', 'model_error', 'the provider cannot be reached', false, '0c0552d9680a', 'none', '2026-11-22 16:35:11.45641+00', '2026-11-22 16:35:13.326214+00', '2026-11-22 16:35:13.268318+00', '', 4, 0, 0, 0, 0, 0, 0, '3667a8a94878', '2026-11-22 16:35:11.709812+00', '2026-11-22 16:35:13.268318+00', '', NULL, 0, NULL, NULL);
INSERT INTO public.runs VALUES ('2fbf5171c9e9', 'dda8fb983f5c', '5b36b6085f26', 1, 1, 'running', NULL, '', false, '0c0552d9680a', 'none', '2026-11-22 16:35:10.912601+00', NULL, '2026-11-22 16:35:13.897188+00', '', 3, 0, 0, 0, 0, 0, 0, '3667a8a94878', '2026-11-22 16:35:11.094812+00', '2026-11-22 16:35:13.897188+00', '', NULL, 0, '8ddab2770598', 'DEFA-0006');
INSERT INTO public.runs VALUES ('20ebf0f3089c', '8bc3596c1222', '5b36b6085f26', 1, 1, 'success', 'stopped', 'the model stopped', false, '0c0552d9680a', 'none', '2026-11-22 16:35:10.054782+00', '2026-11-22 16:35:10.195761+00', '2026-11-22 16:35:10.337509+00', '', 5, 0, 0, 0, 0, 0, 0, '3667a8a94878', '2026-11-22 16:35:10.170129+00', '2026-11-22 16:35:10.170129+00', '', NULL, 0, 'e088edc19c4d', 'DEFA-0004');
INSERT INTO public.runs VALUES ('80945b58b366', '8e7bdac3ad93', '5b36b6085f26', 1, 1, 'failed', 'model_error', 'the provider cannot be reached', false, '0c0552d9680a', 'none', '2026-11-22 16:35:11.76308+00', '2026-11-22 16:35:13.503613+00', '2026-11-22 16:35:13.516355+00', '', 7, 0, 10, 0, 0, 0.5, 0, '3667a8a94878', '2026-11-22 16:35:11.96741+00', '2026-11-22 16:35:13.516355+00', '', NULL, 0, NULL, NULL);
INSERT INTO public.runs VALUES ('da50185027d1', '0bec75227a4c', 'ea5831e289a4', 1, 1, 'running', NULL, '', false, 'e431a14d469f', 'none', '2026-11-22 16:35:05.421083+00', NULL, '2026-11-22 16:35:13.763865+00', '', 3, 0, 0, 0, 0, 0, 0, '3667a8a94878', '2026-11-22 16:35:05.502437+00', '2026-11-22 16:35:13.763865+00', '', NULL, 0, NULL, NULL);
INSERT INTO public.runs VALUES ('52fc5d451ee4', 'd1c963a0242e', '5b36b6085f26', 1, 1, 'running', NULL, '', false, '0c0552d9680a', 'none', '2026-11-22 16:35:08.975589+00', NULL, '2026-11-22 16:35:13.884967+00', '', 3, 0, 0, 0, 0, 0, 0, '3667a8a94878', '2026-11-22 16:35:09.080722+00', '2026-11-22 16:35:13.884967+00', '', NULL, 0, '39b2d9dbd30f', 'DEFA-0001');
INSERT INTO public.session_entries VALUES ('41c718fcb7ef', 1, '3b307378665e', NULL, 'turn', '36c0153031e2', '{"run": "f45416c71d51", "status": "succeeded", "exit_status": "stopped", "error": false}', '2026-11-22 16:35:02.322149+00', '3667a8a94878');
INSERT INTO public.session_entries VALUES ('e36bfea49bcb', 2, '3c27f0fd46e9', NULL, 'turn', 'ec9b47468bac', '{"run": "f55347f669d8", "status": "succeeded", "exit_status": "stopped", "error": false}', '2026-11-22 16:35:02.696358+00', '3667a8a94878');
INSERT INTO public.session_entries VALUES ('81cd663e73ab', 3, '93e7028d2f83', NULL, 'turn', 'e7400b589600', '{"run": "8497a7fedce1", "status": "failed", "exit_status": "time_limit", "error": false}', '2026-11-22 16:35:03.040024+00', '3667a8a94878');
INSERT INTO public.session_entries VALUES ('bca2b776482b', 4, '3bc648835a55', NULL, 'turn', '4aa63176a5a6', '{"run": "aa26e88ab0cb", "status": "failed", "exit_status": "model_error", "error": true}', '2026-11-22 16:35:03.323127+00', '3667a8a94878');
INSERT INTO public.session_entries VALUES ('d7aafc66c721', 5, '577ffeef1bb5', NULL, 'turn', '4b7887e2b6c9', '{"run": "6d2e47585a32", "status": "failed", "exit_status": "lost", "error": false}', '2026-11-22 16:35:03.590962+00', '3667a8a94878');
INSERT INTO public.session_entries VALUES ('ba1653abfbda', 6, '911f58f3973d', NULL, 'turn', '2419d0664ae2', '{"run": null, "status": "canceled", "exit_status": "canceled", "error": false}', '2026-11-22 16:35:03.724599+00', '3667a8a94878');
INSERT INTO public.session_entries VALUES ('67c7028d93e6', 7, 'e97e85ce135a', NULL, 'turn', '645ebd1ef8d4', '{"run": "1e5fe933d719", "status": "canceled", "exit_status": "canceled", "error": false}', '2026-11-22 16:35:03.981222+00', '3667a8a94878');
INSERT INTO public.session_entries VALUES ('c1b8ea993b54', 8, '5d8b5c4389f2', NULL, 'turn', '10a8b2e55c9f', '{"run": "030192147fee", "status": "canceled", "exit_status": "canceled", "error": false}', '2026-11-22 16:35:04.261321+00', '3667a8a94878');
INSERT INTO public.session_entries VALUES ('52ebe2bdb3a8', 9, '0f74e352fac6', NULL, 'turn', '5fef3a6de73c', '{"run": "b516d35ca842", "status": "canceled", "exit_status": "canceled", "error": false}', '2026-11-22 16:35:04.526682+00', '3667a8a94878');
INSERT INTO public.session_entries VALUES ('55711f94f14b', 10, '0fe2c90fe779', NULL, 'turn', 'dc368d896734', '{"run": null, "status": "succeeded", "exit_status": "stopped", "error": false}', '2026-11-22 16:35:08.3981+00', '3667a8a94878');
INSERT INTO public.session_entries VALUES ('7d617062edf4', 11, '36eb83b7afcf', NULL, 'turn', 'df9a5aeb230e', '{"run": null, "status": "succeeded", "exit_status": "stopped", "error": false}', '2026-11-22 16:35:08.483414+00', '3667a8a94878');
INSERT INTO public.session_entries VALUES ('db7b8deb6718', 12, '5190041c57ba', NULL, 'turn', '1ac64cb39332', '{"run": null, "status": "succeeded", "exit_status": "stopped", "error": false}', '2026-11-22 16:35:08.549857+00', '3667a8a94878');
INSERT INTO public.session_entries VALUES ('e858e015b6ab', 13, '18f6733054ee', NULL, 'turn', '46d232210058', '{"run": null, "status": "succeeded", "exit_status": "stopped", "error": false}', '2026-11-22 16:35:08.656203+00', '3667a8a94878');
INSERT INTO public.session_entries VALUES ('fb36066d00cf', 14, '071b417b6ba6', NULL, 'turn', '88728768c997', '{"run": "45c01d4652fd", "status": "succeeded", "exit_status": "stopped", "error": false}', '2026-11-22 16:35:09.480548+00', '3667a8a94878');
INSERT INTO public.session_entries VALUES ('a1221ada7365', 15, '458a9f3e5f57', NULL, 'turn', '217db09d1dc0', '{"run": "a3e4155bb293", "status": "failed", "exit_status": "time_limit", "error": false}', '2026-11-22 16:35:09.837251+00', '3667a8a94878');
INSERT INTO public.session_entries VALUES ('e5c253b9e623', 16, '2df63b528d70', NULL, 'turn', '8bc3596c1222', '{"run": "20ebf0f3089c", "status": "succeeded", "exit_status": "stopped", "error": false}', '2026-11-22 16:35:10.216825+00', '3667a8a94878');
INSERT INTO public.sessions VALUES ('3b307378665e', 'bc95bfc6352a', '', 'build', NULL, '[]', '41c718fcb7ef', NULL, NULL, '2026-11-22 16:35:01.277403+00', '3667a8a94878', NULL);
INSERT INTO public.sessions VALUES ('3c27f0fd46e9', 'bc95bfc6352a', '', 'build', NULL, '[]', 'e36bfea49bcb', NULL, NULL, '2026-11-22 16:35:02.409541+00', '3667a8a94878', NULL);
INSERT INTO public.sessions VALUES ('93e7028d2f83', 'bc95bfc6352a', '', 'build', NULL, '[]', '81cd663e73ab', NULL, NULL, '2026-11-22 16:35:02.761341+00', '3667a8a94878', NULL);
INSERT INTO public.sessions VALUES ('3bc648835a55', 'bc95bfc6352a', '', 'build', NULL, '[]', NULL, NULL, NULL, '2026-11-22 16:35:03.102546+00', '3667a8a94878', NULL);
INSERT INTO public.sessions VALUES ('577ffeef1bb5', 'bc95bfc6352a', '', 'build', NULL, '[]', 'd7aafc66c721', NULL, NULL, '2026-11-22 16:35:03.384634+00', '3667a8a94878', NULL);
INSERT INTO public.sessions VALUES ('911f58f3973d', 'bc95bfc6352a', '', 'build', NULL, '[]', 'ba1653abfbda', NULL, NULL, '2026-11-22 16:35:03.676527+00', '3667a8a94878', NULL);
INSERT INTO public.sessions VALUES ('e97e85ce135a', 'bc95bfc6352a', '', 'build', NULL, '[]', '67c7028d93e6', NULL, NULL, '2026-11-22 16:35:03.755709+00', '3667a8a94878', NULL);
INSERT INTO public.sessions VALUES ('5d8b5c4389f2', 'bc95bfc6352a', '', 'build', NULL, '[]', 'c1b8ea993b54', NULL, NULL, '2026-11-22 16:35:04.034198+00', '3667a8a94878', NULL);
INSERT INTO public.sessions VALUES ('0f74e352fac6', 'bc95bfc6352a', '', 'build', NULL, '[]', '52ebe2bdb3a8', NULL, NULL, '2026-11-22 16:35:04.313823+00', '3667a8a94878', NULL);
INSERT INTO public.sessions VALUES ('bbad5aa3709c', 'bc95bfc6352a', '', 'build', NULL, '[]', NULL, NULL, NULL, '2026-11-22 16:35:04.596662+00', '3667a8a94878', NULL);
INSERT INTO public.sessions VALUES ('37ebda9a4eed', 'bc95bfc6352a', '', 'build', NULL, '[]', NULL, NULL, NULL, '2026-11-22 16:35:04.867155+00', '3667a8a94878', NULL);
INSERT INTO public.sessions VALUES ('a544eac00584', 'bc95bfc6352a', '', 'build', NULL, '[]', NULL, NULL, NULL, '2026-11-22 16:35:05.109795+00', '3667a8a94878', NULL);
INSERT INTO public.sessions VALUES ('2e5d18e41f74', 'bc95bfc6352a', '', 'build', NULL, '[]', NULL, NULL, NULL, '2026-11-22 16:35:05.346782+00', '3667a8a94878', NULL);
INSERT INTO public.sessions VALUES ('6209da28d6bd', 'bc95bfc6352a', '', 'build', NULL, '[]', NULL, NULL, NULL, '2026-11-22 16:35:05.511528+00', '3667a8a94878', NULL);
INSERT INTO public.sessions VALUES ('0a25acef4e6b', 'bc95bfc6352a', '', 'build', NULL, '[]', NULL, NULL, NULL, '2026-11-22 16:35:05.8046+00', '3667a8a94878', NULL);
INSERT INTO public.sessions VALUES ('4e95242834b4', 'bc95bfc6352a', '', 'build', NULL, '[]', NULL, NULL, NULL, '2026-11-22 16:35:06.227047+00', '3667a8a94878', NULL);
INSERT INTO public.sessions VALUES ('4c6cc722fc79', 'bc95bfc6352a', '', 'build', NULL, '[]', NULL, NULL, NULL, '2026-11-22 16:35:06.687585+00', '3667a8a94878', NULL);
INSERT INTO public.sessions VALUES ('82f4f93eb75d', 'bc95bfc6352a', '', 'build', NULL, '[]', NULL, NULL, NULL, '2026-11-22 16:35:06.746089+00', '3667a8a94878', NULL);
INSERT INTO public.sessions VALUES ('55e8df57cb3c', 'bc95bfc6352a', '', 'build', NULL, '[]', NULL, NULL, NULL, '2026-11-22 16:35:06.930477+00', '3667a8a94878', NULL);
INSERT INTO public.sessions VALUES ('a29b73fc2177', 'bc95bfc6352a', '', 'build', NULL, '[]', NULL, NULL, NULL, '2026-11-22 16:35:07.237966+00', '3667a8a94878', NULL);
INSERT INTO public.sessions VALUES ('6f8e0646c156', 'bc95bfc6352a', '', 'build', NULL, '[]', NULL, NULL, NULL, '2026-11-22 16:35:07.290183+00', '3667a8a94878', NULL);
INSERT INTO public.sessions VALUES ('a7ca20f39b40', 'bc95bfc6352a', '', 'build', NULL, '[]', NULL, NULL, NULL, '2026-11-22 16:35:07.608661+00', '3667a8a94878', NULL);
INSERT INTO public.sessions VALUES ('173b8fa72e92', 'bc95bfc6352a', '', 'build', NULL, '[]', NULL, NULL, NULL, '2026-11-22 16:35:07.720374+00', '3667a8a94878', NULL);
INSERT INTO public.sessions VALUES ('0fe2c90fe779', 'bc95bfc6352a', 'description of lead', 'plan', NULL, '[]', '55711f94f14b', NULL, NULL, '2026-11-22 16:35:08.05282+00', '3667a8a94878', NULL);
INSERT INTO public.sessions VALUES ('36eb83b7afcf', 'bc95bfc6352a', 'description of backend', 'plan', NULL, '[]', '7d617062edf4', NULL, NULL, '2026-11-22 16:35:08.144619+00', '3667a8a94878', NULL);
INSERT INTO public.sessions VALUES ('5190041c57ba', 'bc95bfc6352a', 'description of free', 'plan', NULL, '[]', 'db7b8deb6718', NULL, NULL, '2026-11-22 16:35:08.19275+00', '3667a8a94878', NULL);
INSERT INTO public.sessions VALUES ('18f6733054ee', 'bc95bfc6352a', 'description of solo', 'plan', NULL, '[]', 'e858e015b6ab', NULL, NULL, '2026-11-22 16:35:08.245212+00', '3667a8a94878', NULL);
INSERT INTO public.sessions VALUES ('27b242e8e115', 'bc95bfc6352a', 'DEFA-0001 in progress', 'build', NULL, '[]', NULL, NULL, NULL, '2026-11-22 16:35:08.807066+00', '3667a8a94878', 'DEFA-0001');
INSERT INTO public.sessions VALUES ('071b417b6ba6', 'bc95bfc6352a', 'DEFA-0002 with the user', 'build', NULL, '[]', 'fb36066d00cf', NULL, NULL, '2026-11-22 16:35:09.101176+00', '3667a8a94878', 'DEFA-0002');
INSERT INTO public.sessions VALUES ('458a9f3e5f57', 'bc95bfc6352a', 'DEFA-0003 failed', 'build', NULL, '[]', 'a1221ada7365', NULL, NULL, '2026-11-22 16:35:09.565271+00', '3667a8a94878', 'DEFA-0003');
INSERT INTO public.sessions VALUES ('2df63b528d70', 'bc95bfc6352a', 'DEFA-0004 done', 'build', NULL, '[]', 'e5c253b9e623', NULL, NULL, '2026-11-22 16:35:09.908883+00', '3667a8a94878', 'DEFA-0004');
INSERT INTO public.sessions VALUES ('b0de3a1d5990', 'bc95bfc6352a', 'DEFA-0005 canceled', 'build', NULL, '[]', NULL, NULL, NULL, '2026-11-22 16:35:10.433065+00', '3667a8a94878', 'DEFA-0005');
INSERT INTO public.sessions VALUES ('d3cbe6704968', 'bc95bfc6352a', 'DEFA-0006 holds solo', 'build', NULL, '[]', NULL, NULL, NULL, '2026-11-22 16:35:10.716264+00', '3667a8a94878', 'DEFA-0006');
INSERT INTO public.sessions VALUES ('5d9f2b21ba31', 'bc95bfc6352a', 'DEFA-0007 waits for solo', 'build', NULL, '[]', NULL, NULL, NULL, '2026-11-22 16:35:11.029093+00', '3667a8a94878', 'DEFA-0007');
INSERT INTO public.sessions VALUES ('ef52ecdd9bd0', 'bc95bfc6352a', '', 'build', NULL, '[]', NULL, NULL, NULL, '2026-11-22 16:35:11.098068+00', '3667a8a94878', NULL);
INSERT INTO public.sessions VALUES ('8dbf3326f0f7', 'bc95bfc6352a', '', 'build', NULL, '[]', NULL, NULL, NULL, '2026-11-22 16:35:11.339159+00', '3667a8a94878', NULL);
INSERT INTO public.sessions VALUES ('75437ce69a23', 'bc95bfc6352a', '', 'build', NULL, '[]', NULL, NULL, NULL, '2026-11-22 16:35:11.625426+00', '3667a8a94878', NULL);
INSERT INTO public.sessions VALUES ('f316eadbbf1d', 'bc95bfc6352a', '', 'build', NULL, '[]', NULL, NULL, NULL, '2026-11-22 16:35:11.870402+00', '3667a8a94878', NULL);
INSERT INTO public.sessions VALUES ('83075a0d29b2', 'bc95bfc6352a', '', 'build', NULL, '[]', NULL, NULL, NULL, '2026-11-22 16:35:12.335449+00', '3667a8a94878', NULL);
INSERT INTO public.sessions VALUES ('e4ae69c9462f', 'bc95bfc6352a', '', 'build', NULL, '[]', NULL, NULL, NULL, '2026-11-22 16:35:13.805251+00', '3667a8a94878', NULL);
INSERT INTO public.steps VALUES (1, '36c0153031e2', 'f45416c71d51', 1, 1, 'run_started', '{"kind": "run_started", "boot_id": "0c0552d9680a", "sandbox": "none"}', '2026-11-22 16:35:02.060206+00', '2026-11-22 16:35:02.027205+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (2, '36c0153031e2', 'f45416c71d51', 2, 2, 'prepared', '{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}', '2026-11-22 16:35:02.060206+00', '2026-11-22 16:35:02.028287+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (3, '36c0153031e2', 'f45416c71d51', 3, 3, 'user', '{"kind": "user", "text": "succeeded", "source": "prompt"}', '2026-11-22 16:35:02.151502+00', '2026-11-22 16:35:02.029614+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (4, '36c0153031e2', 'f45416c71d51', 4, 4, 'assistant', '{"kind": "assistant", "text": "done", "tool_calls": [], "usage": {"input_tokens": 5, "output_tokens": 0, "thinking_tokens": 0, "cached_tokens": 0, "cost_usd": 0.01}, "model": "", "finish_reason": "", "duration_ms": 0}', '2026-11-22 16:35:02.219652+00', '2026-11-22 16:35:02.210971+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (5, '36c0153031e2', 'f45416c71d51', 5, 5, 'run_ended', '{"kind": "run_ended", "status": "success", "exit_status": "stopped", "reason": "the model stopped", "response": "done", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": true, "verification": ""}', '2026-11-22 16:35:02.219652+00', '2026-11-22 16:35:02.213148+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (6, 'ec9b47468bac', 'f55347f669d8', 1, 1, 'run_started', '{"kind": "run_started", "boot_id": "0c0552d9680a", "sandbox": "none"}', '2026-11-22 16:35:02.508778+00', '2026-11-22 16:35:02.496974+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (7, 'ec9b47468bac', 'f55347f669d8', 2, 2, 'prepared', '{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}', '2026-11-22 16:35:02.508778+00', '2026-11-22 16:35:02.497792+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (8, 'ec9b47468bac', 'f55347f669d8', 3, 3, 'user', '{"kind": "user", "text": "succeeded unheard", "source": "prompt"}', '2026-11-22 16:35:02.579412+00', '2026-11-22 16:35:02.498811+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (9, 'ec9b47468bac', 'f55347f669d8', 4, 4, 'run_ended', '{"kind": "run_ended", "status": "success", "exit_status": "stopped", "reason": "the model stopped", "response": "done", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": true, "verification": ""}', '2026-11-22 16:35:02.648883+00', '2026-11-22 16:35:02.639485+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (10, 'e7400b589600', '8497a7fedce1', 1, 1, 'run_started', '{"kind": "run_started", "boot_id": "0c0552d9680a", "sandbox": "none"}', '2026-11-22 16:35:02.882704+00', '2026-11-22 16:35:02.87467+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (11, 'e7400b589600', '8497a7fedce1', 2, 2, 'prepared', '{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}', '2026-11-22 16:35:02.882704+00', '2026-11-22 16:35:02.87563+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (12, 'e7400b589600', '8497a7fedce1', 3, 3, 'user', '{"kind": "user", "text": "failed", "source": "prompt"}', '2026-11-22 16:35:02.882704+00', '2026-11-22 16:35:02.877043+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (13, 'e7400b589600', '8497a7fedce1', 4, 4, 'run_ended', '{"kind": "run_ended", "status": "failed", "exit_status": "time_limit", "reason": "The time limit of 1800 s was reached.", "response": "done", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": true, "verification": ""}', '2026-11-22 16:35:03.000579+00', '2026-11-22 16:35:02.987911+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (14, '4aa63176a5a6', 'aa26e88ab0cb', 1, 1, 'run_started', '{"kind": "run_started", "boot_id": "0c0552d9680a", "sandbox": "none"}', '2026-11-22 16:35:03.215474+00', '2026-11-22 16:35:03.200042+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (15, '4aa63176a5a6', 'aa26e88ab0cb', 2, 2, 'prepared', '{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}', '2026-11-22 16:35:03.215474+00', '2026-11-22 16:35:03.200859+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (16, '4aa63176a5a6', 'aa26e88ab0cb', 3, 3, 'user', '{"kind": "user", "text": "failed last attempt", "source": "prompt"}', '2026-11-22 16:35:03.255378+00', '2026-11-22 16:35:03.201999+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (17, '4aa63176a5a6', 'aa26e88ab0cb', 4, 4, 'run_ended', '{"kind": "run_ended", "status": "failed", "exit_status": "model_error", "reason": "the provider cannot be reached", "response": "done", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": false, "verification": ""}', '2026-11-22 16:35:03.289611+00', '2026-11-22 16:35:03.283528+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (18, '4b7887e2b6c9', '6d2e47585a32', 1, 1, 'run_started', '{"kind": "run_started", "boot_id": "e698fcc84b23", "sandbox": "none"}', '2026-11-22 16:35:03.464957+00', '2026-11-22 16:35:03.439909+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (19, '4b7887e2b6c9', '6d2e47585a32', 2, 2, 'prepared', '{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}', '2026-11-22 16:35:03.464957+00', '2026-11-22 16:35:03.443019+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (20, '4b7887e2b6c9', '6d2e47585a32', 3, 3, 'user', '{"kind": "user", "text": "failed lost", "source": "prompt"}', '2026-11-22 16:35:03.464957+00', '2026-11-22 16:35:03.448307+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (21, '645ebd1ef8d4', '1e5fe933d719', 1, 1, 'run_started', '{"kind": "run_started", "boot_id": "0c0552d9680a", "sandbox": "none"}', '2026-11-22 16:35:03.826746+00', '2026-11-22 16:35:03.815559+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (22, '645ebd1ef8d4', '1e5fe933d719', 2, 2, 'prepared', '{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}', '2026-11-22 16:35:03.84938+00', '2026-11-22 16:35:03.816648+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (23, '645ebd1ef8d4', '1e5fe933d719', 3, 3, 'user', '{"kind": "user", "text": "canceled with receipt", "source": "prompt"}', '2026-11-22 16:35:03.84938+00', '2026-11-22 16:35:03.817441+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (24, '645ebd1ef8d4', '1e5fe933d719', 4, 4, 'run_ended', '{"kind": "run_ended", "status": "preempted", "exit_status": "canceled", "reason": "canceled", "response": "done", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": true, "verification": ""}', '2026-11-22 16:35:03.957736+00', '2026-11-22 16:35:03.942508+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (25, '10a8b2e55c9f', '030192147fee', 1, 1, 'run_started', '{"kind": "run_started", "boot_id": "0c0552d9680a", "sandbox": "none"}', '2026-11-22 16:35:04.088411+00', '2026-11-22 16:35:04.083381+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (26, '10a8b2e55c9f', '030192147fee', 2, 2, 'prepared', '{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}', '2026-11-22 16:35:04.088411+00', '2026-11-22 16:35:04.084009+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (27, '10a8b2e55c9f', '030192147fee', 3, 3, 'user', '{"kind": "user", "text": "canceled after end", "source": "prompt"}', '2026-11-22 16:35:04.138598+00', '2026-11-22 16:35:04.085245+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (28, '10a8b2e55c9f', '030192147fee', 4, 4, 'run_ended', '{"kind": "run_ended", "status": "success", "exit_status": "stopped", "reason": "the model stopped", "response": "done", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": true, "verification": ""}', '2026-11-22 16:35:04.209079+00', '2026-11-22 16:35:04.202488+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (29, '5fef3a6de73c', 'b516d35ca842', 1, 1, 'run_started', '{"kind": "run_started", "boot_id": "9c7923c0f8f1", "sandbox": "none"}', '2026-11-22 16:35:04.374469+00', '2026-11-22 16:35:04.365585+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (30, '5fef3a6de73c', 'b516d35ca842', 2, 2, 'prepared', '{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}', '2026-11-22 16:35:04.374469+00', '2026-11-22 16:35:04.366968+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (31, '5fef3a6de73c', 'b516d35ca842', 3, 3, 'user', '{"kind": "user", "text": "canceled with loss", "source": "prompt"}', '2026-11-22 16:35:04.409437+00', '2026-11-22 16:35:04.36853+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (32, '222369ad8c10', '52c8a7e7fca6', 1, 1, 'run_started', '{"kind": "run_started", "boot_id": "0c0552d9680a", "sandbox": "none"}', '2026-11-22 16:35:04.709242+00', '2026-11-22 16:35:04.70433+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (33, '222369ad8c10', '52c8a7e7fca6', 2, 2, 'prepared', '{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}', '2026-11-22 16:35:04.709242+00', '2026-11-22 16:35:04.705112+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (34, '222369ad8c10', '52c8a7e7fca6', 3, 3, 'user', '{"kind": "user", "text": "canceling", "source": "prompt"}', '2026-11-22 16:35:04.746014+00', '2026-11-22 16:35:04.706179+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (39, '7303a72e605f', '5215c2912e2e', 2, 2, 'prepared', '{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}', '2026-11-22 16:35:05.28103+00', '2026-11-22 16:35:05.227449+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (40, '7303a72e605f', '5215c2912e2e', 3, 3, 'user', '{"kind": "user", "text": "running", "source": "prompt"}', '2026-11-22 16:35:05.28103+00', '2026-11-22 16:35:05.23204+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (43, '0bec75227a4c', 'da50185027d1', 3, 3, 'user', '{"kind": "user", "text": "running free choice", "source": "prompt"}', '2026-11-22 16:35:05.463059+00', '2026-11-22 16:35:05.403397+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (49, 'de73310ab6c5', 'd2a725f00a0a', 2, 2, 'prepared', '{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}', '2026-11-22 16:35:05.989914+00', '2026-11-22 16:35:05.933862+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (50, 'de73310ab6c5', 'd2a725f00a0a', 3, 3, 'user', '{"kind": "user", "text": "answer on its way", "source": "prompt"}', '2026-11-22 16:35:05.989914+00', '2026-11-22 16:35:05.935248+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (56, '9a50416c5b6b', '99adde2afb54', 5, 5, 'decision', '{"kind": "decision", "call_id": "c1", "approved": true, "by": "person", "comment": ""}', '2026-11-22 16:35:06.565068+00', '2026-11-22 16:35:06.556243+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (58, 'ed3afa217608', '9cdb248fdaf6', 2, 2, 'run_ended', '{"kind": "run_ended", "status": "failed", "exit_status": "refused", "reason": "the repository cannot be reached", "response": "done", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": false, "verification": ""}', '2026-11-22 16:35:07.139444+00', '2026-11-22 16:35:07.080602+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (62, 'dc368d896734', '253fa5e0ee46', 1, 1, 'run_started', '{"kind": "run_started", "boot_id": "0c0552d9680a", "sandbox": "none"}', '2026-11-22 16:35:08.306039+00', '2026-11-22 16:35:08.300153+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (97, 'b78fba58bd67', 'a446794fd76d', 1, 1, 'run_started', '{"kind": "run_started", "boot_id": "0c0552d9680a", "sandbox": "none"}', '2026-11-22 16:35:10.545778+00', '2026-11-22 16:35:10.540235+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (35, '2424d8715b47', '9308f9767888', 1, 1, 'run_started', '{"kind": "run_started", "boot_id": "0c0552d9680a", "sandbox": "none"}', '2026-11-22 16:35:04.937584+00', '2026-11-22 16:35:04.926926+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (36, '2424d8715b47', '9308f9767888', 2, 2, 'prepared', '{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}', '2026-11-22 16:35:04.937584+00', '2026-11-22 16:35:04.927995+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (53, '9a50416c5b6b', '99adde2afb54', 2, 2, 'prepared', '{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}', '2026-11-22 16:35:06.366654+00', '2026-11-22 16:35:06.330518+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (54, '9a50416c5b6b', '99adde2afb54', 3, 3, 'user', '{"kind": "user", "text": "answered", "source": "prompt"}', '2026-11-22 16:35:06.366654+00', '2026-11-22 16:35:06.331458+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (68, '46d232210058', '99a211751c83', 1, 1, 'run_started', '{"kind": "run_started", "boot_id": "0c0552d9680a", "sandbox": "none"}', '2026-11-22 16:35:08.586196+00', '2026-11-22 16:35:08.386478+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (69, '46d232210058', '99a211751c83', 2, 2, 'run_ended', '{"kind": "run_ended", "status": "success", "exit_status": "stopped", "reason": "the model stopped", "response": "It works.", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": true, "verification": ""}', '2026-11-22 16:35:08.586196+00', '2026-11-22 16:35:08.388562+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (70, 'df9a5aeb230e', 'a1863f46713c', 3, 3, 'run_started', '{"kind": "run_started", "boot_id": "0c0552d9680a", "sandbox": "none"}', '2026-11-22 16:35:08.586196+00', '2026-11-22 16:35:08.469914+00', true, '3667a8a94878');
INSERT INTO public.steps VALUES (71, 'df9a5aeb230e', 'a1863f46713c', 4, 4, 'run_ended', '{"kind": "run_ended", "status": "success", "exit_status": "stopped", "reason": "the model stopped", "response": "It works.", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": true, "verification": ""}', '2026-11-22 16:35:08.586196+00', '2026-11-22 16:35:08.470612+00', true, '3667a8a94878');
INSERT INTO public.steps VALUES (72, '1ac64cb39332', 'ea0435d54ec4', 3, 3, 'run_started', '{"kind": "run_started", "boot_id": "0c0552d9680a", "sandbox": "none"}', '2026-11-22 16:35:08.586196+00', '2026-11-22 16:35:08.490573+00', true, '3667a8a94878');
INSERT INTO public.steps VALUES (73, '1ac64cb39332', 'ea0435d54ec4', 4, 4, 'run_ended', '{"kind": "run_ended", "status": "success", "exit_status": "stopped", "reason": "the model stopped", "response": "It works.", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": true, "verification": ""}', '2026-11-22 16:35:08.586196+00', '2026-11-22 16:35:08.492685+00', true, '3667a8a94878');
INSERT INTO public.steps VALUES (74, '46d232210058', '99a211751c83', 3, 3, 'run_started', '{"kind": "run_started", "boot_id": "0c0552d9680a", "sandbox": "none"}', '2026-11-22 16:35:08.586196+00', '2026-11-22 16:35:08.510908+00', true, '3667a8a94878');
INSERT INTO public.steps VALUES (75, '46d232210058', '99a211751c83', 4, 4, 'run_ended', '{"kind": "run_ended", "status": "success", "exit_status": "stopped", "reason": "the model stopped", "response": "It works.", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": true, "verification": ""}', '2026-11-22 16:35:08.586196+00', '2026-11-22 16:35:08.511795+00', true, '3667a8a94878');
INSERT INTO public.steps VALUES (103, '63b7768e7140', 'e6ce8fe138f9', 1, 1, 'run_started', '{"kind": "run_started", "boot_id": "0c0552d9680a", "sandbox": "none"}', '2026-11-22 16:35:11.211456+00', '2026-11-22 16:35:11.195143+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (104, '63b7768e7140', 'e6ce8fe138f9', 2, 2, 'prepared', '{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}', '2026-11-22 16:35:11.211456+00', '2026-11-22 16:35:11.19596+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (108, '57e38a378640', '1c2509ab4259', 3, 3, 'user', '{"kind": "user", "text": "queued again", "source": "prompt"}', '2026-11-22 16:35:11.508015+00', '2026-11-22 16:35:11.453005+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (110, '8e7bdac3ad93', '80945b58b366', 2, 2, 'prepared', '{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}', '2026-11-22 16:35:11.786648+00', '2026-11-22 16:35:11.756317+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (111, '8e7bdac3ad93', '80945b58b366', 3, 3, 'user', '{"kind": "user", "text": "queued from checkpoint", "source": "prompt"}', '2026-11-22 16:35:11.786648+00', '2026-11-22 16:35:11.757263+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (115, '8e7bdac3ad93', '80945b58b366', 4, 4, 'assistant', '{"kind": "assistant", "text": "I do one.", "tool_calls": [{"id": "call one", "name": "shell", "arguments": "{\"command\": \"ls\"}"}], "usage": {"input_tokens": 10, "output_tokens": 0, "thinking_tokens": 0, "cached_tokens": 0, "cost_usd": 0.5}, "model": "", "finish_reason": "", "duration_ms": 0}', '2026-11-22 16:35:12.159981+00', '2026-11-22 16:35:12.153527+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (37, '2424d8715b47', '9308f9767888', 3, 3, 'user', '{"kind": "user", "text": "canceling unnamed", "source": "prompt"}', '2026-11-22 16:35:04.991881+00', '2026-11-22 16:35:04.930103+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (41, '0bec75227a4c', 'da50185027d1', 1, 1, 'run_started', '{"kind": "run_started", "boot_id": "e431a14d469f", "sandbox": "none"}', '2026-11-22 16:35:05.421083+00', '2026-11-22 16:35:05.398321+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (42, '0bec75227a4c', 'da50185027d1', 2, 2, 'prepared', '{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}', '2026-11-22 16:35:05.421083+00', '2026-11-22 16:35:05.399264+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (52, '9a50416c5b6b', '99adde2afb54', 1, 1, 'run_started', '{"kind": "run_started", "boot_id": "0c0552d9680a", "sandbox": "none"}', '2026-11-22 16:35:06.334894+00', '2026-11-22 16:35:06.329759+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (59, 'ba176254edc5', 'c6830274a323', 1, 1, 'run_started', '{"kind": "run_started", "boot_id": "e8997c6b37dd", "sandbox": "none"}', '2026-11-22 16:35:07.505551+00', '2026-11-22 16:35:07.474975+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (60, 'ba176254edc5', 'c6830274a323', 2, 2, 'prepared', '{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}', '2026-11-22 16:35:07.505551+00', '2026-11-22 16:35:07.479647+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (80, 'd1c963a0242e', '52fc5d451ee4', 1, 1, 'run_started', '{"kind": "run_started", "boot_id": "0c0552d9680a", "sandbox": "none"}', '2026-11-22 16:35:08.975589+00', '2026-11-22 16:35:08.965002+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (81, 'd1c963a0242e', '52fc5d451ee4', 2, 2, 'prepared', '{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}', '2026-11-22 16:35:08.975589+00', '2026-11-22 16:35:08.965632+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (92, '8bc3596c1222', '20ebf0f3089c', 1, 1, 'run_started', '{"kind": "run_started", "boot_id": "0c0552d9680a", "sandbox": "none"}', '2026-11-22 16:35:10.054782+00', '2026-11-22 16:35:10.048598+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (93, '8bc3596c1222', '20ebf0f3089c', 2, 2, 'prepared', '{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}', '2026-11-22 16:35:10.054782+00', '2026-11-22 16:35:10.050394+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (109, '8e7bdac3ad93', '80945b58b366', 1, 1, 'run_started', '{"kind": "run_started", "boot_id": "0c0552d9680a", "sandbox": "none"}', '2026-11-22 16:35:11.76308+00', '2026-11-22 16:35:11.755243+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (38, '7303a72e605f', '5215c2912e2e', 1, 1, 'run_started', '{"kind": "run_started", "boot_id": "0c0552d9680a", "sandbox": "none"}', '2026-11-22 16:35:05.237279+00', '2026-11-22 16:35:05.226303+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (48, 'de73310ab6c5', 'd2a725f00a0a', 1, 1, 'run_started', '{"kind": "run_started", "boot_id": "0c0552d9680a", "sandbox": "none"}', '2026-11-22 16:35:05.939151+00', '2026-11-22 16:35:05.931073+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (61, 'ba176254edc5', 'c6830274a323', 3, 3, 'user', '{"kind": "user", "text": "mila runs", "source": "prompt"}', '2026-11-22 16:35:07.577377+00', '2026-11-22 16:35:07.483864+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (63, 'dc368d896734', '253fa5e0ee46', 2, 2, 'run_ended', '{"kind": "run_ended", "status": "success", "exit_status": "stopped", "reason": "the model stopped", "response": "It works.", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": true, "verification": ""}', '2026-11-22 16:35:08.348818+00', '2026-11-22 16:35:08.300924+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (64, 'df9a5aeb230e', 'a1863f46713c', 1, 1, 'run_started', '{"kind": "run_started", "boot_id": "0c0552d9680a", "sandbox": "none"}', '2026-11-22 16:35:08.348818+00', '2026-11-22 16:35:08.308429+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (65, 'df9a5aeb230e', 'a1863f46713c', 2, 2, 'run_ended', '{"kind": "run_ended", "status": "success", "exit_status": "stopped", "reason": "the model stopped", "response": "It works.", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": true, "verification": ""}', '2026-11-22 16:35:08.348818+00', '2026-11-22 16:35:08.309495+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (66, '1ac64cb39332', 'ea0435d54ec4', 1, 1, 'run_started', '{"kind": "run_started", "boot_id": "0c0552d9680a", "sandbox": "none"}', '2026-11-22 16:35:08.348818+00', '2026-11-22 16:35:08.315713+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (67, '1ac64cb39332', 'ea0435d54ec4', 2, 2, 'run_ended', '{"kind": "run_ended", "status": "success", "exit_status": "stopped", "reason": "the model stopped", "response": "It works.", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": true, "verification": ""}', '2026-11-22 16:35:08.348818+00', '2026-11-22 16:35:08.316254+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (82, 'd1c963a0242e', '52fc5d451ee4', 3, 3, 'user', '{"kind": "user", "text": "# Task DEFA-0001: in progress\n\nOrganization: default\nAssigned to: lead (you)\nOpened: 2026-11-22 16:35:08 UTC by kim\n\n## Description\n\n  in progress\n\n## Thread\n\n[Nobody has written a comment yet.]\n\n## Your turn\n\nIt is your turn on this task, lead. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.\nWhen your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.\n\nBudget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.", "source": "prompt"}', '2026-11-22 16:35:09.049781+00', '2026-11-22 16:35:08.966702+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (95, '8bc3596c1222', '20ebf0f3089c', 4, 4, 'comment', '{"kind": "comment", "text": "Finished.", "to_task": true}', '2026-11-22 16:35:10.155173+00', '2026-11-22 16:35:10.143468+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (96, '8bc3596c1222', '20ebf0f3089c', 5, 5, 'run_ended', '{"kind": "run_ended", "status": "success", "exit_status": "stopped", "reason": "the model stopped", "response": "done", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": true, "verification": ""}', '2026-11-22 16:35:10.155173+00', '2026-11-22 16:35:10.145412+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (100, 'dda8fb983f5c', '2fbf5171c9e9', 1, 1, 'run_started', '{"kind": "run_started", "boot_id": "0c0552d9680a", "sandbox": "none"}', '2026-11-22 16:35:10.912601+00', '2026-11-22 16:35:10.900137+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (106, '57e38a378640', '1c2509ab4259', 1, 1, 'run_started', '{"kind": "run_started", "boot_id": "0c0552d9680a", "sandbox": "none"}', '2026-11-22 16:35:11.45641+00', '2026-11-22 16:35:11.449995+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (107, '57e38a378640', '1c2509ab4259', 2, 2, 'prepared', '{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}', '2026-11-22 16:35:11.45641+00', '2026-11-22 16:35:11.451541+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (44, 'b6d56b057b83', '144d8fe376c4', 1, 1, 'run_started', '{"kind": "run_started", "boot_id": "0c0552d9680a", "sandbox": "none"}', '2026-11-22 16:35:05.589563+00', '2026-11-22 16:35:05.57794+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (45, 'b6d56b057b83', '144d8fe376c4', 2, 2, 'prepared', '{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}', '2026-11-22 16:35:05.589563+00', '2026-11-22 16:35:05.580601+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (51, 'de73310ab6c5', 'd2a725f00a0a', 4, 4, 'approval', '{"kind": "approval", "call_id": "c1", "tool": "shell", "why": "It changes files.", "until": null}', '2026-11-22 16:35:06.061021+00', '2026-11-22 16:35:06.048665+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (85, '88728768c997', '45c01d4652fd', 3, 3, 'user', '{"kind": "user", "text": "# Task DEFA-0002: with the user\n\nOrganization: default\nAssigned to: free (you)\nOpened: 2026-11-22 16:35:09 UTC by kim\n\n## Description\n\n  with the user\n\n## Thread\n\n[Nobody has written a comment yet.]\n\n## Your turn\n\nIt is your turn on this task, free. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.\nWhen your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.\n\nBudget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.", "source": "prompt"}', '2026-11-22 16:35:09.346419+00', '2026-11-22 16:35:09.224031+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (46, 'b6d56b057b83', '144d8fe376c4', 3, 3, 'user', '{"kind": "user", "text": "awaiting", "source": "prompt"}', '2026-11-22 16:35:05.631315+00', '2026-11-22 16:35:05.585383+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (47, 'b6d56b057b83', '144d8fe376c4', 4, 4, 'approval', '{"kind": "approval", "call_id": "c1", "tool": "shell", "why": "It changes files: rm x.", "until": null}', '2026-11-22 16:35:05.706847+00', '2026-11-22 16:35:05.688948+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (57, 'ed3afa217608', '9cdb248fdaf6', 1, 1, 'run_started', '{"kind": "run_started", "boot_id": "e431a14d469f", "sandbox": "none"}', '2026-11-22 16:35:07.100701+00', '2026-11-22 16:35:07.078595+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (83, '88728768c997', '45c01d4652fd', 1, 1, 'run_started', '{"kind": "run_started", "boot_id": "0c0552d9680a", "sandbox": "none"}', '2026-11-22 16:35:09.226845+00', '2026-11-22 16:35:09.222603+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (84, '88728768c997', '45c01d4652fd', 2, 2, 'prepared', '{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}', '2026-11-22 16:35:09.226845+00', '2026-11-22 16:35:09.22316+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (88, '217db09d1dc0', 'a3e4155bb293', 1, 1, 'run_started', '{"kind": "run_started", "boot_id": "0c0552d9680a", "sandbox": "none"}', '2026-11-22 16:35:09.674232+00', '2026-11-22 16:35:09.667224+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (112, 'd62d95672988', '491246414342', 1, 1, 'run_started', '{"kind": "run_started", "boot_id": "0c0552d9680a", "sandbox": "none"}', '2026-11-22 16:35:12.059867+00', '2026-11-22 16:35:12.01911+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (119, '57e38a378640', '1c2509ab4259', 4, 4, 'run_ended', '{"kind": "run_ended", "status": "failed", "exit_status": "model_error", "reason": "the provider cannot be reached", "response": "done", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": false, "verification": ""}', '2026-11-22 16:35:13.299978+00', '2026-11-22 16:35:13.284307+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (55, '9a50416c5b6b', '99adde2afb54', 4, 4, 'approval', '{"kind": "approval", "call_id": "c1", "tool": "shell", "why": "It changes files.", "until": null}', '2026-11-22 16:35:06.447531+00', '2026-11-22 16:35:06.438986+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (76, '46d232210058', '99a211751c83', 5, 5, 'run_started', '{"kind": "run_started", "boot_id": "0c0552d9680a", "sandbox": "none"}', '2026-11-22 16:35:08.741741+00', '2026-11-22 16:35:08.603406+00', true, '3667a8a94878');
INSERT INTO public.steps VALUES (77, '46d232210058', '99a211751c83', 6, 6, 'run_ended', '{"kind": "run_ended", "status": "success", "exit_status": "stopped", "reason": "the model stopped", "response": "It works.", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": true, "verification": ""}', '2026-11-22 16:35:08.741741+00', '2026-11-22 16:35:08.604094+00', true, '3667a8a94878');
INSERT INTO public.steps VALUES (78, '46d232210058', '99a211751c83', 7, 7, 'run_started', '{"kind": "run_started", "boot_id": "0c0552d9680a", "sandbox": "none"}', '2026-11-22 16:35:08.741741+00', '2026-11-22 16:35:08.718882+00', true, '3667a8a94878');
INSERT INTO public.steps VALUES (79, '46d232210058', '99a211751c83', 8, 8, 'run_ended', '{"kind": "run_ended", "status": "success", "exit_status": "stopped", "reason": "the model stopped", "response": "It works.", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": true, "verification": ""}', '2026-11-22 16:35:08.741741+00', '2026-11-22 16:35:08.71943+00', true, '3667a8a94878');
INSERT INTO public.steps VALUES (89, '217db09d1dc0', 'a3e4155bb293', 2, 2, 'prepared', '{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}', '2026-11-22 16:35:09.709278+00', '2026-11-22 16:35:09.668226+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (90, '217db09d1dc0', 'a3e4155bb293', 3, 3, 'user', '{"kind": "user", "text": "# Task DEFA-0003: failed\n\nOrganization: default\nAssigned to: free (you)\nOpened: 2026-11-22 16:35:09 UTC by kim\n\n## Description\n\n  failed\n\n## Thread\n\n[Nobody has written a comment yet.]\n\n## Your turn\n\nIt is your turn on this task, free. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.\nWhen your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.\n\nBudget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.", "source": "prompt"}', '2026-11-22 16:35:09.709278+00', '2026-11-22 16:35:09.66927+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (91, '217db09d1dc0', 'a3e4155bb293', 4, 4, 'run_ended', '{"kind": "run_ended", "status": "failed", "exit_status": "time_limit", "reason": "The time limit was reached.", "response": "done", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": true, "verification": ""}', '2026-11-22 16:35:09.790086+00', '2026-11-22 16:35:09.784492+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (98, 'b78fba58bd67', 'a446794fd76d', 2, 2, 'prepared', '{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}', '2026-11-22 16:35:10.595145+00', '2026-11-22 16:35:10.542333+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (99, 'b78fba58bd67', 'a446794fd76d', 3, 3, 'user', '{"kind": "user", "text": "# Task DEFA-0005: canceled\n\nOrganization: default\nAssigned to: free (you)\nOpened: 2026-11-22 16:35:10 UTC by kim\n\n## Description\n\n  canceled\n\n## Thread\n\n[Nobody has written a comment yet.]\n\n## Your turn\n\nIt is your turn on this task, free. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.\nWhen your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.\n\nBudget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.", "source": "prompt"}', '2026-11-22 16:35:10.595145+00', '2026-11-22 16:35:10.543395+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (113, 'd62d95672988', '491246414342', 2, 2, 'prepared', '{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}', '2026-11-22 16:35:12.097398+00', '2026-11-22 16:35:12.023936+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (114, 'd62d95672988', '491246414342', 3, 3, 'user', '{"kind": "user", "text": "withdrawn", "source": "prompt"}', '2026-11-22 16:35:12.097398+00', '2026-11-22 16:35:12.026353+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (116, '8e7bdac3ad93', '80945b58b366', 5, 5, 'tool_result', '{"kind": "tool_result", "call_id": "call one", "output": "one is done", "return_code": 0, "is_error": false, "duration_ms": 0, "output_bytes": 0, "log_sha256": null}', '2026-11-22 16:35:12.19124+00', '2026-11-22 16:35:12.156346+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (117, '8e7bdac3ad93', '80945b58b366', 6, 6, 'checkpoint', '{"kind": "checkpoint", "commit": "7692c3ad3540bb803c020b3aee66cd8887123234", "head": "", "changed": true, "bundle_sha256": "724c14943ee22294c7430066cd2724f5d0c08b35d529a7225c7cc35596abe992", "bundle_bytes": 0, "left_out": [], "spent": {"iterations": 1, "input_tokens": 0, "output_tokens": 0, "cost_usd": 0.5, "seconds": 0.0}}', '2026-11-22 16:35:12.19124+00', '2026-11-22 16:35:12.15929+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (86, '88728768c997', '45c01d4652fd', 4, 4, 'comment', '{"kind": "comment", "text": "I have a question.", "to_task": true}', '2026-11-22 16:35:09.393143+00', '2026-11-22 16:35:09.34861+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (87, '88728768c997', '45c01d4652fd', 5, 5, 'run_ended', '{"kind": "run_ended", "status": "success", "exit_status": "stopped", "reason": "the model stopped", "response": "done", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": true, "verification": ""}', '2026-11-22 16:35:09.393143+00', '2026-11-22 16:35:09.350988+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (94, '8bc3596c1222', '20ebf0f3089c', 3, 3, 'user', '{"kind": "user", "text": "# Task DEFA-0004: done\n\nOrganization: default\nAssigned to: free (you)\nOpened: 2026-11-22 16:35:09 UTC by kim\n\n## Description\n\n  done\n\n## Thread\n\n[Nobody has written a comment yet.]\n\n## Your turn\n\nIt is your turn on this task, free. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.\nWhen your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.\n\nBudget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.", "source": "prompt"}', '2026-11-22 16:35:10.10191+00', '2026-11-22 16:35:10.051468+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (101, 'dda8fb983f5c', '2fbf5171c9e9', 2, 2, 'prepared', '{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}', '2026-11-22 16:35:10.977709+00', '2026-11-22 16:35:10.900963+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (102, 'dda8fb983f5c', '2fbf5171c9e9', 3, 3, 'user', '{"kind": "user", "text": "# Task DEFA-0006: holds solo\n\nOrganization: default\nAssigned to: solo (you)\nOpened: 2026-11-22 16:35:10 UTC by kim\n\n## Description\n\n  holds solo\n\n## Thread\n\n[Nobody has written a comment yet.]\n\n## Your turn\n\nIt is your turn on this task, solo. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.\nWhen your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.\n\nBudget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.", "source": "prompt"}', '2026-11-22 16:35:10.977709+00', '2026-11-22 16:35:10.901975+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (105, '63b7768e7140', 'e6ce8fe138f9', 3, 3, 'user', '{"kind": "user", "text": "given back", "source": "prompt"}', '2026-11-22 16:35:11.259929+00', '2026-11-22 16:35:11.198276+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (118, '63b7768e7140', 'e6ce8fe138f9', 4, 4, 'run_ended', '{"kind": "run_ended", "status": "preempted", "exit_status": "canceled", "reason": "the drone stops", "response": "done", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": true, "order_at_fault": true, "verification": ""}', '2026-11-22 16:35:13.184442+00', '2026-11-22 16:35:13.173636+00', false, '3667a8a94878');
INSERT INTO public.steps VALUES (120, '8e7bdac3ad93', '80945b58b366', 7, 7, 'run_ended', '{"kind": "run_ended", "status": "failed", "exit_status": "model_error", "reason": "the provider cannot be reached", "response": "done", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": false, "verification": ""}', '2026-11-22 16:35:13.465618+00', '2026-11-22 16:35:13.433036+00', false, '3667a8a94878');
INSERT INTO public.tasks VALUES ('DEFA-0001', 1, 'in progress', 'in progress', 'in_progress', '39b2d9dbd30f', 'bc95bfc6352a', '27b242e8e115', 'build', 0, '{}', 'd1c963a0242e', 0, 'kim', '2026-11-22 16:35:08.80717+00', '2026-11-22 16:35:08.80717+00', '2026-11-22 16:35:08.871084+00', NULL, '3667a8a94878');
INSERT INTO public.tasks VALUES ('DEFA-0002', 2, 'with the user', 'with the user', 'open', NULL, 'bc95bfc6352a', '071b417b6ba6', 'build', 0, '{}', '88728768c997', 0, 'kim', '2026-11-22 16:35:09.101241+00', '2026-11-22 16:35:09.101241+00', '2026-11-22 16:35:09.499257+00', NULL, '3667a8a94878');
INSERT INTO public.tasks VALUES ('DEFA-0003', 3, 'failed', 'failed', 'failed', NULL, 'bc95bfc6352a', '458a9f3e5f57', 'build', 0, '{}', '217db09d1dc0', 0, 'kim', '2026-11-22 16:35:09.565339+00', '2026-11-22 16:35:09.565339+00', '2026-11-22 16:35:09.845422+00', NULL, '3667a8a94878');
INSERT INTO public.tasks VALUES ('DEFA-0004', 4, 'done', 'done', 'done', NULL, 'bc95bfc6352a', '2df63b528d70', 'build', 0, '{}', '8bc3596c1222', 0, 'kim', '2026-11-22 16:35:09.908941+00', '2026-11-22 16:35:09.908941+00', '2026-11-22 16:35:10.374437+00', '2026-11-22 16:35:10.374437+00', '3667a8a94878');
INSERT INTO public.tasks VALUES ('DEFA-0005', 5, 'canceled', 'canceled', 'canceled', NULL, 'bc95bfc6352a', 'b0de3a1d5990', 'build', 0, '{}', 'b78fba58bd67', 0, 'kim', '2026-11-22 16:35:10.433139+00', '2026-11-22 16:35:10.433139+00', '2026-11-22 16:35:10.649816+00', '2026-11-22 16:35:10.649816+00', '3667a8a94878');
INSERT INTO public.tasks VALUES ('DEFA-0006', 6, 'holds solo', 'holds solo', 'in_progress', '8ddab2770598', 'bc95bfc6352a', 'd3cbe6704968', 'build', 0, '{}', 'dda8fb983f5c', 0, 'kim', '2026-11-22 16:35:10.716335+00', '2026-11-22 16:35:10.716335+00', '2026-11-22 16:35:10.774351+00', NULL, '3667a8a94878');
INSERT INTO public.tasks VALUES ('DEFA-0007', 7, 'waits for solo', 'waits for solo', 'open', '8ddab2770598', 'bc95bfc6352a', '5d9f2b21ba31', 'build', 0, '{}', NULL, 0, 'kim', '2026-11-22 16:35:11.029178+00', '2026-11-22 16:35:11.029178+00', '2026-11-22 16:35:11.029178+00', NULL, '3667a8a94878');
INSERT INTO public.turns VALUES ('8fc4eb06b2d4', '3b307378665e', '36c0153031e2', 'system', 'succeeded', 'scripted', 'openai/scripted', 'build', 'finished', 'done', '{"tool_calls": 0, "input_tokens": 5, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.01, "duration_ms": 0}', '2026-11-22 16:35:01.277567+00', '2026-11-22 16:35:02.279487+00', '3667a8a94878');
INSERT INTO public.turns VALUES ('c1348c61284c', '3c27f0fd46e9', 'ec9b47468bac', 'system', 'succeeded unheard', 'scripted', 'openai/scripted', 'build', 'finished', 'done', '{"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}', '2026-11-22 16:35:02.409681+00', '2026-11-22 16:35:02.680356+00', '3667a8a94878');
INSERT INTO public.turns VALUES ('ce340f7fa94d', '93e7028d2f83', 'e7400b589600', 'system', 'failed', 'scripted', 'openai/scripted', 'build', 'error', 'done', '{"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}', '2026-11-22 16:35:02.761601+00', '2026-11-22 16:35:03.028204+00', '3667a8a94878');
INSERT INTO public.turns VALUES ('e0e0aa3125cd', '3bc648835a55', '4aa63176a5a6', 'system', 'failed last attempt', 'scripted', 'openai/scripted', 'build', 'error', 'done', '{"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}', '2026-11-22 16:35:03.102684+00', '2026-11-22 16:35:03.309406+00', '3667a8a94878');
INSERT INTO public.turns VALUES ('44158fb2a140', '577ffeef1bb5', '4b7887e2b6c9', 'system', 'failed lost', 'scripted', 'openai/scripted', 'build', 'error', NULL, '{"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}', '2026-11-22 16:35:03.384769+00', '2026-11-22 16:35:03.584593+00', '3667a8a94878');
INSERT INTO public.turns VALUES ('c618404e81d4', '911f58f3973d', '2419d0664ae2', 'system', 'canceled before', 'scripted', 'openai/scripted', 'build', 'aborted', NULL, '{"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}', '2026-11-22 16:35:03.676666+00', '2026-11-22 16:35:03.7122+00', '3667a8a94878');
INSERT INTO public.turns VALUES ('1f7cdc141eaa', 'e97e85ce135a', '645ebd1ef8d4', 'system', 'canceled with receipt', 'scripted', 'openai/scripted', 'build', 'aborted', 'done', '{"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}', '2026-11-22 16:35:03.755861+00', '2026-11-22 16:35:03.970961+00', '3667a8a94878');
INSERT INTO public.turns VALUES ('58229c5ed0b4', '5d8b5c4389f2', '10a8b2e55c9f', 'system', 'canceled after end', 'scripted', 'openai/scripted', 'build', 'aborted', 'done', '{"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}', '2026-11-22 16:35:04.034358+00', '2026-11-22 16:35:04.242301+00', '3667a8a94878');
INSERT INTO public.turns VALUES ('5c45c634f3e7', '0f74e352fac6', '5fef3a6de73c', 'system', 'canceled with loss', 'scripted', 'openai/scripted', 'build', 'aborted', NULL, '{"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}', '2026-11-22 16:35:04.313944+00', '2026-11-22 16:35:04.518607+00', '3667a8a94878');
INSERT INTO public.turns VALUES ('40b3c2050e34', 'bbad5aa3709c', '222369ad8c10', 'system', 'canceling', 'scripted', 'openai/scripted', 'build', 'processing', NULL, '{}', '2026-11-22 16:35:04.596773+00', NULL, '3667a8a94878');
INSERT INTO public.turns VALUES ('908522822bb9', '37ebda9a4eed', '2424d8715b47', 'system', 'canceling unnamed', 'scripted', 'openai/scripted', 'build', 'processing', NULL, '{}', '2026-11-22 16:35:04.867269+00', NULL, '3667a8a94878');
INSERT INTO public.turns VALUES ('c384e4c22e51', 'a544eac00584', '7303a72e605f', 'system', 'running', 'scripted', 'openai/scripted', 'build', 'processing', NULL, '{}', '2026-11-22 16:35:05.110528+00', NULL, '3667a8a94878');
INSERT INTO public.turns VALUES ('862d1303d5a7', '2e5d18e41f74', '0bec75227a4c', 'system', 'running free choice', 'scripted', 'openai/scripted', 'build', 'processing', NULL, '{}', '2026-11-22 16:35:05.346902+00', NULL, '3667a8a94878');
INSERT INTO public.turns VALUES ('ae9cbe906656', '6209da28d6bd', 'b6d56b057b83', 'system', 'awaiting', 'scripted', 'openai/scripted', 'build', 'processing', NULL, '{}', '2026-11-22 16:35:05.511682+00', NULL, '3667a8a94878');
INSERT INTO public.turns VALUES ('157833f469ce', '0a25acef4e6b', 'de73310ab6c5', 'system', 'answer on its way', 'scripted', 'openai/scripted', 'build', 'processing', NULL, '{}', '2026-11-22 16:35:05.804741+00', NULL, '3667a8a94878');
INSERT INTO public.turns VALUES ('1f136be9ec87', '4e95242834b4', '9a50416c5b6b', 'system', 'answered', 'scripted', 'openai/scripted', 'build', 'processing', NULL, '{}', '2026-11-22 16:35:06.227165+00', NULL, '3667a8a94878');
INSERT INTO public.turns VALUES ('7a4d6dfeeb2d', '4c6cc722fc79', '29705fc01236', 'system', 'no drone fits', 'scripted', 'openai/scripted', 'build', 'processing', NULL, '{}', '2026-11-22 16:35:06.687886+00', NULL, '3667a8a94878');
INSERT INTO public.turns VALUES ('900b7e5fb414', '2e5d18e41f74', '4a65e719253a', 'system', 'session waits', 'scripted', 'openai/scripted', 'build', 'processing', NULL, '{}', '2026-11-22 16:35:06.721172+00', NULL, '3667a8a94878');
INSERT INTO public.turns VALUES ('05dcd968bf9a', '82f4f93eb75d', '0fe2bb7f3f4b', 'system', 'named removed', 'scripted', 'openai/scripted', 'build', 'processing', NULL, '{}', '2026-11-22 16:35:06.746233+00', NULL, '3667a8a94878');
INSERT INTO public.turns VALUES ('470ebe5db54e', '55e8df57cb3c', 'ed3afa217608', 'system', 'pausing', 'scripted', 'openai/scripted', 'build', 'processing', NULL, '{}', '2026-11-22 16:35:06.930599+00', NULL, '3667a8a94878');
INSERT INTO public.turns VALUES ('b88897fe2ef2', 'a29b73fc2177', '2ab6e2d69f5a', 'system', 'assigned never started', 'scripted', 'openai/scripted', 'build', 'processing', NULL, '{}', '2026-11-22 16:35:07.238097+00', NULL, '3667a8a94878');
INSERT INTO public.turns VALUES ('7ac06e45db28', '6f8e0646c156', 'ba176254edc5', 'system', 'mila runs', 'scripted', 'openai/scripted', 'build', 'processing', NULL, '{}', '2026-11-22 16:35:07.290329+00', NULL, '3667a8a94878');
INSERT INTO public.turns VALUES ('352d5244f1a1', 'a7ca20f39b40', '296256c3a22c', 'system', 'assigned busy', 'scripted', 'openai/scripted', 'build', 'processing', NULL, '{}', '2026-11-22 16:35:07.608782+00', NULL, '3667a8a94878');
INSERT INTO public.turns VALUES ('557242629838', '173b8fa72e92', '9df42cfdb215', 'system', 'taken back', 'scripted', 'openai/scripted', 'build', 'processing', NULL, '{}', '2026-11-22 16:35:07.720559+00', NULL, '3667a8a94878');
INSERT INTO public.turns VALUES ('0ffdd28d5edc', '0fe2c90fe779', 'dc368d896734', 'kim', 'Describe agent lead from its instructions.', 'scripted', 'openai/scripted', 'plan', 'finished', 'It works.', '{"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}', '2026-11-22 16:35:08.063991+00', '2026-11-22 16:35:08.376503+00', '3667a8a94878');
INSERT INTO public.turns VALUES ('e90fc7a890e0', '36eb83b7afcf', 'df9a5aeb230e', 'kim', 'Describe agent backend from its instructions.', 'scripted', 'openai/scripted', 'plan', 'finished', 'It works.', '{"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}', '2026-11-22 16:35:08.146757+00', '2026-11-22 16:35:08.469233+00', '3667a8a94878');
INSERT INTO public.turns VALUES ('8e592395c30f', '5190041c57ba', '1ac64cb39332', 'kim', 'Describe agent free from its instructions.', 'scripted', 'openai/scripted', 'plan', 'finished', 'It works.', '{"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}', '2026-11-22 16:35:08.197038+00', '2026-11-22 16:35:08.533799+00', '3667a8a94878');
INSERT INTO public.turns VALUES ('c7717ede5e0f', '18f6733054ee', '46d232210058', 'kim', 'Describe agent solo from its instructions.', 'scripted', 'openai/scripted', 'plan', 'finished', 'It works.', '{"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}', '2026-11-22 16:35:08.248206+00', '2026-11-22 16:35:08.637748+00', '3667a8a94878');
INSERT INTO public.turns VALUES ('3b37308b6c81', '27b242e8e115', 'd1c963a0242e', 'kim', '# Task DEFA-0001: in progress
Organization: default
Assigned to: lead (you)
Opened: 2026-11-22 16:35:08 UTC by kim
## Description
  in progress
## Thread
[Nobody has written a comment yet.]
## Your turn
It is your turn on this task, lead. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.
When your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.
Budget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.', 'scripted', 'openai/scripted', 'build', 'processing', NULL, '{}', '2026-11-22 16:35:08.842023+00', NULL, '3667a8a94878');
INSERT INTO public.turns VALUES ('c816f9b950d4', '071b417b6ba6', '88728768c997', 'kim', '# Task DEFA-0002: with the user
Organization: default
Assigned to: free (you)
Opened: 2026-11-22 16:35:09 UTC by kim
## Description
  with the user
## Thread
[Nobody has written a comment yet.]
## Your turn
It is your turn on this task, free. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.
When your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.
Budget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.', 'scripted', 'openai/scripted', 'build', 'finished', 'done', '{"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}', '2026-11-22 16:35:09.126417+00', '2026-11-22 16:35:09.463349+00', '3667a8a94878');
INSERT INTO public.turns VALUES ('b6fa56043349', '458a9f3e5f57', '217db09d1dc0', 'kim', '# Task DEFA-0003: failed
Organization: default
Assigned to: free (you)
Opened: 2026-11-22 16:35:09 UTC by kim
## Description
  failed
## Thread
[Nobody has written a comment yet.]
## Your turn
It is your turn on this task, free. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.
When your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.
Budget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.', 'scripted', 'openai/scripted', 'build', 'error', 'done', '{"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}', '2026-11-22 16:35:09.576542+00', '2026-11-22 16:35:09.820386+00', '3667a8a94878');
INSERT INTO public.turns VALUES ('10fc63805230', '2df63b528d70', '8bc3596c1222', 'kim', '# Task DEFA-0004: done
Organization: default
Assigned to: free (you)
Opened: 2026-11-22 16:35:09 UTC by kim
## Description
  done
## Thread
[Nobody has written a comment yet.]
## Your turn
It is your turn on this task, free. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.
When your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.
Budget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.', 'scripted', 'openai/scripted', 'build', 'finished', 'done', '{"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}', '2026-11-22 16:35:09.932363+00', '2026-11-22 16:35:10.204328+00', '3667a8a94878');
INSERT INTO public.turns VALUES ('448daed73060', 'b0de3a1d5990', 'b78fba58bd67', 'kim', '# Task DEFA-0005: canceled
Organization: default
Assigned to: free (you)
Opened: 2026-11-22 16:35:10 UTC by kim
## Description
  canceled
## Thread
[Nobody has written a comment yet.]
## Your turn
It is your turn on this task, free. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.
When your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.
Budget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.', 'scripted', 'openai/scripted', 'build', 'processing', NULL, '{}', '2026-11-22 16:35:10.442485+00', NULL, '3667a8a94878');
INSERT INTO public.turns VALUES ('dc1e80a1a6e5', 'd3cbe6704968', 'dda8fb983f5c', 'kim', '# Task DEFA-0006: holds solo
Organization: default
Assigned to: solo (you)
Opened: 2026-11-22 16:35:10 UTC by kim
## Description
  holds solo
## Thread
[Nobody has written a comment yet.]
## Your turn
It is your turn on this task, solo. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.
When your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.
Budget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.', 'scripted', 'openai/scripted', 'build', 'processing', NULL, '{}', '2026-11-22 16:35:10.745193+00', NULL, '3667a8a94878');
INSERT INTO public.turns VALUES ('31a97bd44e48', 'ef52ecdd9bd0', '63b7768e7140', 'system', 'given back', 'scripted', 'openai/scripted', 'build', 'processing', NULL, '{}', '2026-11-22 16:35:11.099603+00', NULL, '3667a8a94878');
INSERT INTO public.turns VALUES ('41c436676f54', '8dbf3326f0f7', '57e38a378640', 'system', 'queued again', 'scripted', 'openai/scripted', 'build', 'processing', NULL, '{}', '2026-11-22 16:35:11.339276+00', NULL, '3667a8a94878');
INSERT INTO public.turns VALUES ('5f9bcfb81af4', '75437ce69a23', '8e7bdac3ad93', 'system', 'queued from checkpoint', 'scripted', 'openai/scripted', 'build', 'processing', NULL, '{}', '2026-11-22 16:35:11.625602+00', NULL, '3667a8a94878');
INSERT INTO public.turns VALUES ('cad390aa0d65', '83075a0d29b2', '3d28fb9e09cf', 'system', 'taken back removed', 'scripted', 'openai/scripted', 'build', 'processing', NULL, '{}', '2026-11-22 16:35:12.335575+00', NULL, '3667a8a94878');
INSERT INTO public.turns VALUES ('a99f8b38ebc7', 'e4ae69c9462f', '55499c0ca08f', 'system', 'none takes work', 'scripted', 'openai/scripted', 'build', 'processing', NULL, '{}', '2026-11-22 16:35:13.805376+00', NULL, '3667a8a94878');
INSERT INTO public.turns VALUES ('71ac09af079a', 'f316eadbbf1d', 'd62d95672988', 'system', 'withdrawn', 'scripted', 'openai/scripted', 'build', 'processing', NULL, '{}', '2026-11-22 16:35:11.870562+00', NULL, '3667a8a94878');
INSERT INTO public.words VALUES (1, 'ec9b47468bac', 'kim', 'one more thing', true, false, NULL, '2026-11-22 16:35:02.611756+00', '3667a8a94878');
SELECT pg_catalog.setval('public.comments_id_seq', 7, true);
SELECT pg_catalog.setval('public.raw_events_id_seq', 1, false);
SELECT pg_catalog.setval('public.steps_id_seq', 120, true);
SELECT pg_catalog.setval('public.words_number_seq', 1, true);
ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY public.agents
    ADD CONSTRAINT pk_agents PRIMARY KEY (id);
ALTER TABLE ONLY public.api_tokens
    ADD CONSTRAINT pk_api_tokens PRIMARY KEY (id);
ALTER TABLE ONLY public.blobs
    ADD CONSTRAINT pk_blobs PRIMARY KEY (run_id, sha256);
ALTER TABLE ONLY public.comments
    ADD CONSTRAINT pk_comments PRIMARY KEY (id);
ALTER TABLE ONLY public.counters
    ADD CONSTRAINT pk_counters PRIMARY KEY (name);
ALTER TABLE ONLY public.dispatches
    ADD CONSTRAINT pk_dispatches PRIMARY KEY (id);
ALTER TABLE ONLY public.drones
    ADD CONSTRAINT pk_drones PRIMARY KEY (id);
ALTER TABLE ONLY public.inbox
    ADD CONSTRAINT pk_inbox PRIMARY KEY (id);
ALTER TABLE ONLY public.join_tokens
    ADD CONSTRAINT pk_join_tokens PRIMARY KEY (id);
ALTER TABLE ONLY public.key_pairs
    ADD CONSTRAINT pk_key_pairs PRIMARY KEY (id);
ALTER TABLE ONLY public.login_links
    ADD CONSTRAINT pk_login_links PRIMARY KEY (id);
ALTER TABLE ONLY public.orders
    ADD CONSTRAINT pk_orders PRIMARY KEY (id);
ALTER TABLE ONLY public.organizations
    ADD CONSTRAINT pk_organizations PRIMARY KEY (id);
ALTER TABLE ONLY public.owners
    ADD CONSTRAINT pk_owners PRIMARY KEY (name);
ALTER TABLE ONLY public.projects
    ADD CONSTRAINT pk_projects PRIMARY KEY (id);
ALTER TABLE ONLY public.providers
    ADD CONSTRAINT pk_providers PRIMARY KEY (id);
ALTER TABLE ONLY public.raw_events
    ADD CONSTRAINT pk_raw_events PRIMARY KEY (id);
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT pk_runs PRIMARY KEY (id);
ALTER TABLE ONLY public.schedules
    ADD CONSTRAINT pk_schedules PRIMARY KEY (id);
ALTER TABLE ONLY public.session_entries
    ADD CONSTRAINT pk_session_entries PRIMARY KEY (id);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT pk_sessions PRIMARY KEY (id);
ALTER TABLE ONLY public.steps
    ADD CONSTRAINT pk_steps PRIMARY KEY (id);
ALTER TABLE ONLY public.tasks
    ADD CONSTRAINT pk_tasks PRIMARY KEY (id);
ALTER TABLE ONLY public.trigger_deliveries
    ADD CONSTRAINT pk_trigger_deliveries PRIMARY KEY (trigger_id, delivery);
ALTER TABLE ONLY public.triggers
    ADD CONSTRAINT pk_triggers PRIMARY KEY (id);
ALTER TABLE ONLY public.turns
    ADD CONSTRAINT pk_turns PRIMARY KEY (id);
ALTER TABLE ONLY public.web_sessions
    ADD CONSTRAINT pk_web_sessions PRIMARY KEY (id);
ALTER TABLE ONLY public.webhook_deliveries
    ADD CONSTRAINT pk_webhook_deliveries PRIMARY KEY (id);
ALTER TABLE ONLY public.webhooks
    ADD CONSTRAINT pk_webhooks PRIMARY KEY (id);
ALTER TABLE ONLY public.words
    ADD CONSTRAINT pk_words PRIMARY KEY (number);
ALTER TABLE ONLY public.agents
    ADD CONSTRAINT uq_agents_name UNIQUE (organization_id, name);
ALTER TABLE ONLY public.api_tokens
    ADD CONSTRAINT uq_api_tokens_secret_hash UNIQUE (secret_hash);
ALTER TABLE ONLY public.drones
    ADD CONSTRAINT uq_drones_token_hash UNIQUE (token_hash);
ALTER TABLE ONLY public.join_tokens
    ADD CONSTRAINT uq_join_tokens_secret_hash UNIQUE (secret_hash);
ALTER TABLE ONLY public.login_links
    ADD CONSTRAINT uq_login_links_secret_hash UNIQUE (secret_hash);
ALTER TABLE ONLY public.orders
    ADD CONSTRAINT uq_orders_idempotency UNIQUE (organization_id, idempotency_key);
ALTER TABLE ONLY public.organizations
    ADD CONSTRAINT uq_organizations_name UNIQUE (name);
ALTER TABLE ONLY public.steps
    ADD CONSTRAINT uq_steps_order_seq UNIQUE (order_id, seq);
ALTER TABLE ONLY public.steps
    ADD CONSTRAINT uq_steps_run_seq UNIQUE (run_id, run_seq);
ALTER TABLE ONLY public.turns
    ADD CONSTRAINT uq_turns_order_id UNIQUE (order_id);
ALTER TABLE ONLY public.web_sessions
    ADD CONSTRAINT uq_web_sessions_secret_hash UNIQUE (secret_hash);
CREATE INDEX ix_agents_organization_id ON public.agents USING btree (organization_id);
CREATE INDEX ix_api_tokens_organization_id ON public.api_tokens USING btree (organization_id);
CREATE INDEX ix_blobs_organization_id ON public.blobs USING btree (organization_id);
CREATE INDEX ix_comments_organization_id ON public.comments USING btree (organization_id);
CREATE INDEX ix_comments_thread ON public.comments USING btree (task_id, id);
CREATE INDEX ix_dispatches_closed_at ON public.dispatches USING btree (closed_at);
CREATE INDEX ix_dispatches_drone_id ON public.dispatches USING btree (drone_id);
CREATE INDEX ix_dispatches_open ON public.dispatches USING btree (organization_id, closed_at);
CREATE INDEX ix_dispatches_order_id ON public.dispatches USING btree (order_id);
CREATE INDEX ix_dispatches_organization_id ON public.dispatches USING btree (organization_id);
CREATE INDEX ix_dispatches_published_at ON public.dispatches USING btree (published_at);
CREATE INDEX ix_drones_organization_id ON public.drones USING btree (organization_id);
CREATE INDEX ix_drones_public_key ON public.drones USING btree (public_key);
CREATE INDEX ix_inbox_drone_id ON public.inbox USING btree (drone_id);
CREATE INDEX ix_inbox_organization_id ON public.inbox USING btree (organization_id);
CREATE INDEX ix_join_tokens_organization_id ON public.join_tokens USING btree (organization_id);
CREATE INDEX ix_login_links_organization_id ON public.login_links USING btree (organization_id);
CREATE INDEX ix_orders_agent_id ON public.orders USING btree (agent_id);
CREATE INDEX ix_orders_drone_id ON public.orders USING btree (drone_id);
CREATE INDEX ix_orders_mirrors ON public.orders USING btree (project_id, drone_id);
CREATE INDEX ix_orders_number ON public.orders USING btree (number);
CREATE INDEX ix_orders_organization_id ON public.orders USING btree (organization_id);
CREATE INDEX ix_orders_project_id ON public.orders USING btree (project_id);
CREATE INDEX ix_orders_session_id ON public.orders USING btree (session_id);
CREATE INDEX ix_orders_state ON public.orders USING btree (organization_id, status);
CREATE INDEX ix_orders_status ON public.orders USING btree (status);
CREATE INDEX ix_orders_task_id ON public.orders USING btree (task_id);
CREATE INDEX ix_orders_unended ON public.orders USING btree (status, drone_id) WHERE (ended_at IS NULL);
CREATE INDEX ix_projects_organization_id ON public.projects USING btree (organization_id);
CREATE INDEX ix_providers_organization_id ON public.providers USING btree (organization_id);
CREATE INDEX ix_raw_events_organization_id ON public.raw_events USING btree (organization_id);
CREATE INDEX ix_runs_drone_id ON public.runs USING btree (drone_id);
CREATE INDEX ix_runs_order_id ON public.runs USING btree (order_id);
CREATE INDEX ix_runs_organization_id ON public.runs USING btree (organization_id);
CREATE INDEX ix_runs_status ON public.runs USING btree (status);
CREATE INDEX ix_runs_task_id ON public.runs USING btree (task_id);
CREATE INDEX ix_runs_totals ON public.runs USING btree (organization_id, agent_id, task_id, cost_usd, input_tokens, output_tokens, duration_ms);
CREATE INDEX ix_schedules_next_at ON public.schedules USING btree (next_at);
CREATE INDEX ix_schedules_organization_id ON public.schedules USING btree (organization_id);
CREATE INDEX ix_session_entries_number ON public.session_entries USING btree (number);
CREATE INDEX ix_session_entries_order_id ON public.session_entries USING btree (order_id);
CREATE INDEX ix_session_entries_organization_id ON public.session_entries USING btree (organization_id);
CREATE INDEX ix_session_entries_session_id ON public.session_entries USING btree (session_id);
CREATE INDEX ix_sessions_organization_id ON public.sessions USING btree (organization_id);
CREATE INDEX ix_steps_organization_id ON public.steps USING btree (organization_id);
CREATE INDEX ix_tasks_assignee_id ON public.tasks USING btree (assignee_id);
CREATE INDEX ix_tasks_listed ON public.tasks USING btree (organization_id, number);
CREATE INDEX ix_tasks_organization_id ON public.tasks USING btree (organization_id);
CREATE INDEX ix_tasks_queue ON public.tasks USING btree (organization_id, status, priority, queued_at);
CREATE INDEX ix_trigger_deliveries_at ON public.trigger_deliveries USING btree (at);
CREATE INDEX ix_trigger_deliveries_organization_id ON public.trigger_deliveries USING btree (organization_id);
CREATE INDEX ix_triggers_organization_id ON public.triggers USING btree (organization_id);
CREATE INDEX ix_turns_organization_id ON public.turns USING btree (organization_id);
CREATE INDEX ix_turns_session_id ON public.turns USING btree (session_id);
CREATE INDEX ix_web_sessions_organization_id ON public.web_sessions USING btree (organization_id);
CREATE INDEX ix_webhook_deliveries_due ON public.webhook_deliveries USING btree (done_at, next_at);
CREATE INDEX ix_webhook_deliveries_organization_id ON public.webhook_deliveries USING btree (organization_id);
CREATE INDEX ix_webhook_deliveries_webhook_id ON public.webhook_deliveries USING btree (webhook_id);
CREATE INDEX ix_webhooks_organization_id ON public.webhooks USING btree (organization_id);
CREATE INDEX ix_words_order_id ON public.words USING btree (order_id);
CREATE INDEX ix_words_organization_id ON public.words USING btree (organization_id);
CREATE UNIQUE INDEX uq_drones_name_alive ON public.drones USING btree (organization_id, name) WHERE (removed_at IS NULL);
CREATE UNIQUE INDEX uq_organizations_acronym ON public.organizations USING btree (acronym);
CREATE UNIQUE INDEX uq_projects_slug_alive ON public.projects USING btree (organization_id, slug) WHERE (removed_at IS NULL);
CREATE UNIQUE INDEX uq_providers_name_alive ON public.providers USING btree (organization_id, name) WHERE (removed_at IS NULL);
CREATE UNIQUE INDEX uq_schedules_name_alive ON public.schedules USING btree (organization_id, name) WHERE (removed_at IS NULL);
CREATE UNIQUE INDEX uq_triggers_name_alive ON public.triggers USING btree (organization_id, name) WHERE (removed_at IS NULL);
CREATE UNIQUE INDEX uq_webhooks_name_alive ON public.webhooks USING btree (organization_id, name) WHERE (removed_at IS NULL);
ALTER TABLE ONLY public.agents
    ADD CONSTRAINT fk_agents_boss_id_agents FOREIGN KEY (boss_id) REFERENCES public.agents(id);
ALTER TABLE ONLY public.agents
    ADD CONSTRAINT fk_agents_organization_id_organizations FOREIGN KEY (organization_id) REFERENCES public.organizations(id);
ALTER TABLE ONLY public.agents
    ADD CONSTRAINT fk_agents_project_id_projects FOREIGN KEY (project_id) REFERENCES public.projects(id);
ALTER TABLE ONLY public.agents
    ADD CONSTRAINT fk_agents_provider_id_providers FOREIGN KEY (provider_id) REFERENCES public.providers(id);
ALTER TABLE ONLY public.api_tokens
    ADD CONSTRAINT fk_api_tokens_organization_id_organizations FOREIGN KEY (organization_id) REFERENCES public.organizations(id);
ALTER TABLE ONLY public.blobs
    ADD CONSTRAINT fk_blobs_organization_id_organizations FOREIGN KEY (organization_id) REFERENCES public.organizations(id);
ALTER TABLE ONLY public.blobs
    ADD CONSTRAINT fk_blobs_run_id_dispatches FOREIGN KEY (run_id) REFERENCES public.dispatches(id);
ALTER TABLE ONLY public.comments
    ADD CONSTRAINT fk_comments_agent_id_agents FOREIGN KEY (agent_id) REFERENCES public.agents(id);
ALTER TABLE ONLY public.comments
    ADD CONSTRAINT fk_comments_organization_id_organizations FOREIGN KEY (organization_id) REFERENCES public.organizations(id);
ALTER TABLE ONLY public.comments
    ADD CONSTRAINT fk_comments_task_id_tasks FOREIGN KEY (task_id) REFERENCES public.tasks(id);
ALTER TABLE ONLY public.dispatches
    ADD CONSTRAINT fk_dispatches_drone_id_drones FOREIGN KEY (drone_id) REFERENCES public.drones(id);
ALTER TABLE ONLY public.dispatches
    ADD CONSTRAINT fk_dispatches_order_id_orders FOREIGN KEY (order_id) REFERENCES public.orders(id);
ALTER TABLE ONLY public.dispatches
    ADD CONSTRAINT fk_dispatches_organization_id_organizations FOREIGN KEY (organization_id) REFERENCES public.organizations(id);
ALTER TABLE ONLY public.drones
    ADD CONSTRAINT fk_drones_organization_id_organizations FOREIGN KEY (organization_id) REFERENCES public.organizations(id);
ALTER TABLE ONLY public.inbox
    ADD CONSTRAINT fk_inbox_drone_id_drones FOREIGN KEY (drone_id) REFERENCES public.drones(id);
ALTER TABLE ONLY public.inbox
    ADD CONSTRAINT fk_inbox_organization_id_organizations FOREIGN KEY (organization_id) REFERENCES public.organizations(id);
ALTER TABLE ONLY public.join_tokens
    ADD CONSTRAINT fk_join_tokens_organization_id_organizations FOREIGN KEY (organization_id) REFERENCES public.organizations(id);
ALTER TABLE ONLY public.login_links
    ADD CONSTRAINT fk_login_links_organization_id_organizations FOREIGN KEY (organization_id) REFERENCES public.organizations(id);
ALTER TABLE ONLY public.orders
    ADD CONSTRAINT fk_orders_drone_id_drones FOREIGN KEY (drone_id) REFERENCES public.drones(id);
ALTER TABLE ONLY public.orders
    ADD CONSTRAINT fk_orders_organization_id_organizations FOREIGN KEY (organization_id) REFERENCES public.organizations(id);
ALTER TABLE ONLY public.orders
    ADD CONSTRAINT fk_orders_project_id_projects FOREIGN KEY (project_id) REFERENCES public.projects(id);
ALTER TABLE ONLY public.orders
    ADD CONSTRAINT fk_orders_provider_id_providers FOREIGN KEY (provider_id) REFERENCES public.providers(id);
ALTER TABLE ONLY public.orders
    ADD CONSTRAINT fk_orders_session_id_sessions FOREIGN KEY (session_id) REFERENCES public.sessions(id);
ALTER TABLE ONLY public.orders
    ADD CONSTRAINT fk_orders_wanted_drone_id_drones FOREIGN KEY (wanted_drone_id) REFERENCES public.drones(id);
ALTER TABLE ONLY public.projects
    ADD CONSTRAINT fk_projects_organization_id_organizations FOREIGN KEY (organization_id) REFERENCES public.organizations(id);
ALTER TABLE ONLY public.projects
    ADD CONSTRAINT fk_projects_provider_id_providers FOREIGN KEY (provider_id) REFERENCES public.providers(id);
ALTER TABLE ONLY public.providers
    ADD CONSTRAINT fk_providers_organization_id_organizations FOREIGN KEY (organization_id) REFERENCES public.organizations(id);
ALTER TABLE ONLY public.raw_events
    ADD CONSTRAINT fk_raw_events_organization_id_organizations FOREIGN KEY (organization_id) REFERENCES public.organizations(id);
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT fk_runs_drone_id_drones FOREIGN KEY (drone_id) REFERENCES public.drones(id);
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT fk_runs_id_dispatches FOREIGN KEY (id) REFERENCES public.dispatches(id);
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT fk_runs_order_id_orders FOREIGN KEY (order_id) REFERENCES public.orders(id);
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT fk_runs_organization_id_organizations FOREIGN KEY (organization_id) REFERENCES public.organizations(id);
ALTER TABLE ONLY public.schedules
    ADD CONSTRAINT fk_schedules_organization_id_organizations FOREIGN KEY (organization_id) REFERENCES public.organizations(id);
ALTER TABLE ONLY public.session_entries
    ADD CONSTRAINT fk_session_entries_order_id_orders FOREIGN KEY (order_id) REFERENCES public.orders(id);
ALTER TABLE ONLY public.session_entries
    ADD CONSTRAINT fk_session_entries_organization_id_organizations FOREIGN KEY (organization_id) REFERENCES public.organizations(id);
ALTER TABLE ONLY public.session_entries
    ADD CONSTRAINT fk_session_entries_session_id_sessions FOREIGN KEY (session_id) REFERENCES public.sessions(id);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT fk_sessions_organization_id_organizations FOREIGN KEY (organization_id) REFERENCES public.organizations(id);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT fk_sessions_project_id_projects FOREIGN KEY (project_id) REFERENCES public.projects(id);
ALTER TABLE ONLY public.steps
    ADD CONSTRAINT fk_steps_order_id_orders FOREIGN KEY (order_id) REFERENCES public.orders(id);
ALTER TABLE ONLY public.steps
    ADD CONSTRAINT fk_steps_organization_id_organizations FOREIGN KEY (organization_id) REFERENCES public.organizations(id);
ALTER TABLE ONLY public.steps
    ADD CONSTRAINT fk_steps_run_id_runs FOREIGN KEY (run_id) REFERENCES public.runs(id);
ALTER TABLE ONLY public.tasks
    ADD CONSTRAINT fk_tasks_assignee_id_agents FOREIGN KEY (assignee_id) REFERENCES public.agents(id);
ALTER TABLE ONLY public.tasks
    ADD CONSTRAINT fk_tasks_organization_id_organizations FOREIGN KEY (organization_id) REFERENCES public.organizations(id);
ALTER TABLE ONLY public.tasks
    ADD CONSTRAINT fk_tasks_project_id_projects FOREIGN KEY (project_id) REFERENCES public.projects(id);
ALTER TABLE ONLY public.tasks
    ADD CONSTRAINT fk_tasks_session_id_sessions FOREIGN KEY (session_id) REFERENCES public.sessions(id);
ALTER TABLE ONLY public.trigger_deliveries
    ADD CONSTRAINT fk_trigger_deliveries_organization_id_organizations FOREIGN KEY (organization_id) REFERENCES public.organizations(id);
ALTER TABLE ONLY public.trigger_deliveries
    ADD CONSTRAINT fk_trigger_deliveries_trigger_id_triggers FOREIGN KEY (trigger_id) REFERENCES public.triggers(id);
ALTER TABLE ONLY public.triggers
    ADD CONSTRAINT fk_triggers_organization_id_organizations FOREIGN KEY (organization_id) REFERENCES public.organizations(id);
ALTER TABLE ONLY public.turns
    ADD CONSTRAINT fk_turns_order_id_orders FOREIGN KEY (order_id) REFERENCES public.orders(id);
ALTER TABLE ONLY public.turns
    ADD CONSTRAINT fk_turns_organization_id_organizations FOREIGN KEY (organization_id) REFERENCES public.organizations(id);
ALTER TABLE ONLY public.turns
    ADD CONSTRAINT fk_turns_session_id_sessions FOREIGN KEY (session_id) REFERENCES public.sessions(id);
ALTER TABLE ONLY public.web_sessions
    ADD CONSTRAINT fk_web_sessions_organization_id_organizations FOREIGN KEY (organization_id) REFERENCES public.organizations(id);
ALTER TABLE ONLY public.webhook_deliveries
    ADD CONSTRAINT fk_webhook_deliveries_organization_id_organizations FOREIGN KEY (organization_id) REFERENCES public.organizations(id);
ALTER TABLE ONLY public.webhook_deliveries
    ADD CONSTRAINT fk_webhook_deliveries_webhook_id_webhooks FOREIGN KEY (webhook_id) REFERENCES public.webhooks(id);
ALTER TABLE ONLY public.webhooks
    ADD CONSTRAINT fk_webhooks_organization_id_organizations FOREIGN KEY (organization_id) REFERENCES public.organizations(id);
ALTER TABLE ONLY public.words
    ADD CONSTRAINT fk_words_order_id_orders FOREIGN KEY (order_id) REFERENCES public.orders(id);
ALTER TABLE ONLY public.words
    ADD CONSTRAINT fk_words_organization_id_organizations FOREIGN KEY (organization_id) REFERENCES public.organizations(id);
