BEGIN TRANSACTION;
CREATE TABLE agents (
	id VARCHAR(12) NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	instructions TEXT, 
	instructions_path VARCHAR(1024), 
	project_id VARCHAR(12), 
	boss_id VARCHAR(12), 
	max_iterations INTEGER NOT NULL, 
	cost_limit DOUBLE, 
	provider_id VARCHAR(12), 
	model VARCHAR(255), 
	labels JSON NOT NULL, 
	concurrency INTEGER NOT NULL, 
	description TEXT NOT NULL, 
	created_at DATETIME NOT NULL, 
	removed_at DATETIME, 
	organization_id VARCHAR(12) NOT NULL, 
	CONSTRAINT pk_agents PRIMARY KEY (id), 
	CONSTRAINT uq_agents_name UNIQUE (organization_id, name), 
	CONSTRAINT fk_agents_project_id_projects FOREIGN KEY(project_id) REFERENCES projects (id), 
	CONSTRAINT fk_agents_boss_id_agents FOREIGN KEY(boss_id) REFERENCES agents (id), 
	CONSTRAINT fk_agents_provider_id_providers FOREIGN KEY(provider_id) REFERENCES providers (id), 
	CONSTRAINT fk_agents_organization_id_organizations FOREIGN KEY(organization_id) REFERENCES organizations (id)
);
INSERT INTO "agents" VALUES('3374c3a27a3e','lead','Work.',NULL,NULL,NULL,50,NULL,NULL,NULL,'{}',0,'It works.','2026-11-22 16:34:14.943579',NULL,'7f34a72872ba');
INSERT INTO "agents" VALUES('83e6751f6ae9','backend','Work.',NULL,NULL,'3374c3a27a3e',50,NULL,NULL,NULL,'{}',0,'It works.','2026-11-22 16:34:15.230237',NULL,'7f34a72872ba');
INSERT INTO "agents" VALUES('f62378ceabfe','free','Work.',NULL,NULL,NULL,50,NULL,NULL,NULL,'{}',0,'It works.','2026-11-22 16:34:15.317780',NULL,'7f34a72872ba');
INSERT INTO "agents" VALUES('cb433639e550','solo','Work.',NULL,NULL,NULL,50,NULL,NULL,NULL,'{}',1,'It works.','2026-11-22 16:34:15.484227',NULL,'7f34a72872ba');
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0003');
CREATE TABLE api_tokens (
	id VARCHAR(12) NOT NULL, 
	name VARCHAR(128) NOT NULL, 
	role VARCHAR(16) NOT NULL, 
	secret_hash VARCHAR(64) NOT NULL, 
	created_at DATETIME NOT NULL, 
	last_used_at DATETIME, 
	expires_at DATETIME, 
	revoked_at DATETIME, 
	organization_id VARCHAR(12) NOT NULL, everywhere BOOLEAN DEFAULT 0 NOT NULL, 
	CONSTRAINT pk_api_tokens PRIMARY KEY (id), 
	CONSTRAINT uq_api_tokens_secret_hash UNIQUE (secret_hash), 
	CONSTRAINT fk_api_tokens_organization_id_organizations FOREIGN KEY(organization_id) REFERENCES organizations (id)
);
CREATE TABLE blobs (
	run_id VARCHAR(12) NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	size BIGINT NOT NULL, 
	created_at DATETIME NOT NULL, 
	organization_id VARCHAR(12) NOT NULL, sealed BOOLEAN DEFAULT 0 NOT NULL, 
	CONSTRAINT pk_blobs PRIMARY KEY (run_id, sha256), 
	CONSTRAINT fk_blobs_run_id_dispatches FOREIGN KEY(run_id) REFERENCES dispatches (id), 
	CONSTRAINT fk_blobs_organization_id_organizations FOREIGN KEY(organization_id) REFERENCES organizations (id)
);
INSERT INTO "blobs" VALUES('d58d486cb562','724c14943ee22294c7430066cd2724f5d0c08b35d529a7225c7cc35596abe992',24,'2026-11-22 16:34:19.709935','7f34a72872ba',1);
CREATE TABLE comments (
	id INTEGER NOT NULL, 
	task_id VARCHAR(32) NOT NULL, 
	author VARCHAR(64) NOT NULL, 
	agent_id VARCHAR(12), 
	user VARCHAR(128) NOT NULL, 
	kind VARCHAR(24) NOT NULL, 
	text TEXT NOT NULL, 
	run_id VARCHAR(12), 
	at DATETIME NOT NULL, 
	organization_id VARCHAR(12) NOT NULL, 
	CONSTRAINT pk_comments PRIMARY KEY (id), 
	CONSTRAINT fk_comments_task_id_tasks FOREIGN KEY(task_id) REFERENCES tasks (id), 
	CONSTRAINT fk_comments_agent_id_agents FOREIGN KEY(agent_id) REFERENCES agents (id), 
	CONSTRAINT fk_comments_organization_id_organizations FOREIGN KEY(organization_id) REFERENCES organizations (id)
);
INSERT INTO "comments" VALUES(1,'DEFA-0002','free','f62378ceabfe','','comment','I have a question.','7f17a8da655d','2026-11-22 16:34:16.676757','7f34a72872ba');
INSERT INTO "comments" VALUES(2,'DEFA-0002','system',NULL,'','returned','free tagged nobody, no mention is open, and free has no boss. Back to the user.','7f17a8da655d','2026-11-22 16:34:16.707024','7f34a72872ba');
INSERT INTO "comments" VALUES(3,'DEFA-0003','system',NULL,'','failed','The run of free failed: The time limit was reached (all of it: fleet run show 203a19ceb2ad). The task is with the user.','203a19ceb2ad','2026-11-22 16:34:17.231755','7f34a72872ba');
INSERT INTO "comments" VALUES(4,'DEFA-0004','free','f62378ceabfe','','comment','Finished.','de8625bf5866','2026-11-22 16:34:17.686774','7f34a72872ba');
INSERT INTO "comments" VALUES(5,'DEFA-0004','system',NULL,'','returned','free tagged nobody, no mention is open, and free has no boss. Back to the user.','de8625bf5866','2026-11-22 16:34:17.751001','7f34a72872ba');
INSERT INTO "comments" VALUES(6,'DEFA-0004','system',NULL,'','done','kim marked the task as done.',NULL,'2026-11-22 16:34:17.826272','7f34a72872ba');
INSERT INTO "comments" VALUES(7,'DEFA-0005','system',NULL,'','canceled','kim canceled the task: the plan changed.','a26a6a7702b6','2026-11-22 16:34:18.038066','7f34a72872ba');
CREATE TABLE counters (
	name VARCHAR(64) NOT NULL, 
	value BIGINT NOT NULL, 
	CONSTRAINT pk_counters PRIMARY KEY (name)
);
INSERT INTO "counters" VALUES('orders',40);
CREATE TABLE dispatches (
	id VARCHAR(12) NOT NULL, 
	order_id VARCHAR(12) NOT NULL, 
	drone_id VARCHAR(12) NOT NULL, 
	generation INTEGER NOT NULL, 
	created_at DATETIME NOT NULL, 
	published_at DATETIME, 
	claimed_at DATETIME, 
	closed_at DATETIME, 
	organization_id VARCHAR(12) NOT NULL, 
	CONSTRAINT pk_dispatches PRIMARY KEY (id), 
	CONSTRAINT fk_dispatches_order_id_orders FOREIGN KEY(order_id) REFERENCES orders (id), 
	CONSTRAINT fk_dispatches_drone_id_drones FOREIGN KEY(drone_id) REFERENCES drones (id), 
	CONSTRAINT fk_dispatches_organization_id_organizations FOREIGN KEY(organization_id) REFERENCES organizations (id)
);
INSERT INTO "dispatches" VALUES('3561c8386766','45af5468ef0f','0a536298beea',1,'2026-11-22 16:34:07.134346','2026-11-22 16:34:07.420409','2026-11-22 16:34:07.344059','2026-11-22 16:34:07.651023','7f34a72872ba');
INSERT INTO "dispatches" VALUES('87a5c01ba07f','38f9402b0820','0a536298beea',1,'2026-11-22 16:34:07.736943','2026-11-22 16:34:07.788824','2026-11-22 16:34:07.801565','2026-11-22 16:34:07.991279','7f34a72872ba');
INSERT INTO "dispatches" VALUES('385d55bc448e','18e3b5b93527','0a536298beea',1,'2026-11-22 16:34:08.140952','2026-11-22 16:34:08.253839','2026-11-22 16:34:08.242521','2026-11-22 16:34:08.350065','7f34a72872ba');
INSERT INTO "dispatches" VALUES('2d921b03cdc9','0179d5d5bfc6','0a536298beea',1,'2026-11-22 16:34:08.506511','2026-11-22 16:34:08.654740','2026-11-22 16:34:08.538040','2026-11-22 16:34:08.620730','7f34a72872ba');
INSERT INTO "dispatches" VALUES('082d7f66ce53','2263b569a566','04bf3ec5bc60',1,'2026-11-22 16:34:08.698222','2026-11-22 16:34:08.722624','2026-11-22 16:34:08.793921','2026-11-22 16:34:08.885543','7f34a72872ba');
INSERT INTO "dispatches" VALUES('39f19ff28184','1e4f89338e62','0a536298beea',1,'2026-11-22 16:34:08.998769','2026-11-22 16:34:09.091812','2026-11-22 16:34:09.059957','2026-11-22 16:34:09.156252','7f34a72872ba');
INSERT INTO "dispatches" VALUES('8fc69f9d66e6','4373695e7c2b','0a536298beea',1,'2026-11-22 16:34:09.242530','2026-11-22 16:34:09.267517','2026-11-22 16:34:09.326605','2026-11-22 16:34:09.445091','7f34a72872ba');
INSERT INTO "dispatches" VALUES('d4202286b4ee','8cf0bf8e3309','04bf3ec5bc60',1,'2026-11-22 16:34:09.582529','2026-11-22 16:34:09.661894','2026-11-22 16:34:09.746776','2026-11-22 16:34:09.948953','7f34a72872ba');
INSERT INTO "dispatches" VALUES('5e7f98221be2','a4ca462dbecb','0a536298beea',1,'2026-11-22 16:34:09.997307','2026-11-22 16:34:10.044275','2026-11-22 16:34:10.090439',NULL,'7f34a72872ba');
INSERT INTO "dispatches" VALUES('a541eb083acb','b9136af5f792','0a536298beea',1,'2026-11-22 16:34:10.211353','2026-11-22 16:34:10.429449','2026-11-22 16:34:10.272836',NULL,'7f34a72872ba');
INSERT INTO "dispatches" VALUES('29bffb9ef521','e03e3c9c650a','0a536298beea',1,'2026-11-22 16:34:10.640051','2026-11-22 16:34:11.535105','2026-11-22 16:34:10.797908',NULL,'7f34a72872ba');
INSERT INTO "dispatches" VALUES('a51718cb0016','b2d00d9b68e4','04bf3ec5bc60',1,'2026-11-22 16:34:10.967224','2026-11-22 16:34:11.625737','2026-11-22 16:34:11.637193',NULL,'7f34a72872ba');
INSERT INTO "dispatches" VALUES('b49d983b1986','b0826109453e','0a536298beea',1,'2026-11-22 16:34:11.865875','2026-11-22 16:34:11.926369','2026-11-22 16:34:11.947239',NULL,'7f34a72872ba');
INSERT INTO "dispatches" VALUES('e2549a89c239','1e31eb84dc5e','0a536298beea',1,'2026-11-22 16:34:12.147561','2026-11-22 16:34:12.225938','2026-11-22 16:34:12.266379',NULL,'7f34a72872ba');
INSERT INTO "dispatches" VALUES('9372cd099a1a','d637eaa25f89','0a536298beea',1,'2026-11-22 16:34:12.554276','2026-11-22 16:34:12.634274','2026-11-22 16:34:12.694939',NULL,'7f34a72872ba');
INSERT INTO "dispatches" VALUES('0646cf62dc6f','bbe5f7531ce3','b3fb3fc3d71b',1,'2026-11-22 16:34:13.357862','2026-11-22 16:34:13.504603',NULL,'2026-11-22 16:34:13.478996','7f34a72872ba');
INSERT INTO "dispatches" VALUES('c89233d569a5','e1ddc6fcc7b7','04bf3ec5bc60',1,'2026-11-22 16:34:13.619174','2026-11-22 16:34:13.668291','2026-11-22 16:34:13.682932','2026-11-22 16:34:13.687063','7f34a72872ba');
INSERT INTO "dispatches" VALUES('c6969ba91755','fc1a6a39bc47','5df1b0a14ef0',1,'2026-11-22 16:34:13.847656','2026-11-22 16:34:13.928244',NULL,NULL,'7f34a72872ba');
INSERT INTO "dispatches" VALUES('cb977fd4066c','058bffa666cf','fae045b3c6c8',1,'2026-11-22 16:34:13.899795','2026-11-22 16:34:13.974578','2026-11-22 16:34:14.019357',NULL,'7f34a72872ba');
INSERT INTO "dispatches" VALUES('fbb8c84c463d','8b3297207dc2','fae045b3c6c8',1,'2026-11-22 16:34:14.125168','2026-11-22 16:34:14.168582',NULL,NULL,'7f34a72872ba');
INSERT INTO "dispatches" VALUES('95d6c0bd5f77','a3e74f5c8c27','c28fc63554db',1,'2026-11-22 16:34:14.234986','2026-11-22 16:34:14.324476',NULL,'2026-11-22 16:34:14.639812','7f34a72872ba');
INSERT INTO "dispatches" VALUES('ef36db080a10','6bf2c8cb2975','04bf3ec5bc60',1,'2026-11-22 16:34:15.168966','2026-11-22 16:34:15.468335','2026-11-22 16:34:15.601720','2026-11-22 16:34:15.665733','7f34a72872ba');
INSERT INTO "dispatches" VALUES('00f3a8b2ec10','eaadf09d8f6c','0a536298beea',1,'2026-11-22 16:34:15.249910','2026-11-22 16:34:15.703708','2026-11-22 16:34:15.791694','2026-11-22 16:34:15.799509','7f34a72872ba');
INSERT INTO "dispatches" VALUES('e5661b48482d','a3e74f5c8c27','04bf3ec5bc60',2,'2026-11-22 16:34:15.300858','2026-11-22 16:34:19.996348',NULL,NULL,'7f34a72872ba');
INSERT INTO "dispatches" VALUES('154f31e58147','78ad17083435','0a536298beea',1,'2026-11-22 16:34:15.390925','2026-11-22 16:34:15.703708','2026-11-22 16:34:15.846462','2026-11-22 16:34:15.853884','7f34a72872ba');
INSERT INTO "dispatches" VALUES('a570fd9198cc','2d74a4d261e2','0a536298beea',1,'2026-11-22 16:34:15.537138','2026-11-22 16:34:15.981681','2026-11-22 16:34:15.913732','2026-11-22 16:34:15.922263','7f34a72872ba');
INSERT INTO "dispatches" VALUES('6b49fb129e7c','f942973c1ffc','0a536298beea',1,'2026-11-22 16:34:16.049874','2026-11-22 16:34:16.148607','2026-11-22 16:34:16.227710',NULL,'7f34a72872ba');
INSERT INTO "dispatches" VALUES('7f17a8da655d','459fac5aa244','0a536298beea',1,'2026-11-22 16:34:16.397935','2026-11-22 16:34:16.457782','2026-11-22 16:34:16.488590','2026-11-22 16:34:16.679967','7f34a72872ba');
INSERT INTO "dispatches" VALUES('203a19ceb2ad','8e504c8868d7','0a536298beea',1,'2026-11-22 16:34:16.873829','2026-11-22 16:34:16.981546','2026-11-22 16:34:17.040179','2026-11-22 16:34:17.214433','7f34a72872ba');
INSERT INTO "dispatches" VALUES('de8625bf5866','4d27a32df710','0a536298beea',1,'2026-11-22 16:34:17.419023','2026-11-22 16:34:17.489609','2026-11-22 16:34:17.550422','2026-11-22 16:34:17.715921','7f34a72872ba');
INSERT INTO "dispatches" VALUES('a26a6a7702b6','0eadbba5f17a','0a536298beea',1,'2026-11-22 16:34:17.894424','2026-11-22 16:34:18.053975','2026-11-22 16:34:17.974642',NULL,'7f34a72872ba');
INSERT INTO "dispatches" VALUES('9e13ff8fa483','c323ead6b023','0a536298beea',1,'2026-11-22 16:34:18.252951','2026-11-22 16:34:18.327729','2026-11-22 16:34:18.344584',NULL,'7f34a72872ba');
INSERT INTO "dispatches" VALUES('b38c786667c0','b50ac323a892','0a536298beea',1,'2026-11-22 16:34:18.465339','2026-11-22 16:34:18.620733','2026-11-22 16:34:18.546917','2026-11-22 16:34:20.645303','7f34a72872ba');
INSERT INTO "dispatches" VALUES('d71bfad03696','8b7c9dc3f83d','0a536298beea',1,'2026-11-22 16:34:18.628736','2026-11-22 16:34:18.849983','2026-11-22 16:34:18.702352','2026-11-22 16:34:20.789942','7f34a72872ba');
INSERT INTO "dispatches" VALUES('d58d486cb562','9d0817cb98bc','0a536298beea',1,'2026-11-22 16:34:18.899776','2026-11-22 16:34:19.074694','2026-11-22 16:34:19.132840','2026-11-22 16:34:20.827047','7f34a72872ba');
INSERT INTO "dispatches" VALUES('fab3f20a300f','93cd8fbec08a','0a536298beea',1,'2026-11-22 16:34:19.386467','2026-11-22 16:34:19.549182','2026-11-22 16:34:19.468149',NULL,'7f34a72872ba');
INSERT INTO "dispatches" VALUES('d3d343ce28d7','8b2c140ab7bb','3b7fb4e7416a',1,'2026-11-22 16:34:19.835968','2026-11-22 16:34:20.443086',NULL,'2026-11-22 16:34:20.981515','7f34a72872ba');
CREATE TABLE drones (
	id VARCHAR(12) NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	machine_id VARCHAR(128) NOT NULL, 
	public_key VARCHAR(64) NOT NULL, 
	labels JSON NOT NULL, 
	fixed_labels JSON NOT NULL, 
	concurrency INTEGER NOT NULL, 
	sandbox VARCHAR(32) NOT NULL, 
	version VARCHAR(32) NOT NULL, 
	host VARCHAR(255) NOT NULL, 
	token_hash VARCHAR(64) NOT NULL, 
	broker_password_hash VARCHAR(64) NOT NULL, 
	registered_at DATETIME NOT NULL, 
	removed_at DATETIME, 
	draining BOOLEAN NOT NULL, 
	boot_id VARCHAR(64), 
	last_seen_at DATETIME, 
	stopped_at DATETIME, 
	beat JSON, 
	organization_id VARCHAR(12) NOT NULL, serves JSON DEFAULT '[]' NOT NULL, 
	CONSTRAINT pk_drones PRIMARY KEY (id), 
	CONSTRAINT uq_drones_token_hash UNIQUE (token_hash), 
	CONSTRAINT fk_drones_organization_id_organizations FOREIGN KEY(organization_id) REFERENCES organizations (id)
);
INSERT INTO "drones" VALUES('0a536298beea','oka','machine-of-oka','dncdXdFSfyYrEe9yaFyBHUaZz0LVinCPvG7mKJHwRko=','{}','{}',30,'none','0','test-host','4bdf81e6f669754de3d1145199a0df5b0144eb3d6d83eb36376ae3971ccf3747','205e915821cd009d0f19eee20ce4056ea78037e9934d1c8297c4a2ffc01077fa','2026-11-22 16:34:06.033477',NULL,0,'a3877acdbc40','2026-11-22 16:34:20.905431',NULL,'{"drone_id": "0a536298beea", "machine_id": "machine-of-oka", "boot_id": "a3877acdbc40", "sent_at": "2026-11-22T16:34:20.899210Z", "version": "0", "sandbox": "none", "concurrency": 30, "warm": false, "draining": false, "full": "", "leaving": false, "stopping": false, "runs": [{"run_id": "5e7f98221be2", "order_id": "a4ca462dbecb", "generation": 1, "doing": "", "since": null, "progress_at": null, "doing_seconds": 0.0, "quiet_seconds": 0.0, "waits_for": "", "last_seq": 3, "ended": false}, {"run_id": "a541eb083acb", "order_id": "b9136af5f792", "generation": 1, "doing": "", "since": null, "progress_at": null, "doing_seconds": 0.0, "quiet_seconds": 0.0, "waits_for": "", "last_seq": 3, "ended": false}, {"run_id": "29bffb9ef521", "order_id": "e03e3c9c650a", "generation": 1, "doing": "", "since": null, "progress_at": null, "doing_seconds": 0.0, "quiet_seconds": 0.0, "waits_for": "", "last_seq": 3, "ended": false}, {"run_id": "b49d983b1986", "order_id": "b0826109453e", "generation": 1, "doing": "", "since": null, "progress_at": null, "doing_seconds": 0.0, "quiet_seconds": 0.0, "waits_for": "", "last_seq": 4, "ended": false}, {"run_id": "e2549a89c239", "order_id": "1e31eb84dc5e", "generation": 1, "doing": "", "since": null, "progress_at": null, "doing_seconds": 0.0, "quiet_seconds": 0.0, "waits_for": "", "last_seq": 4, "ended": false}, {"run_id": "9372cd099a1a", "order_id": "d637eaa25f89", "generation": 1, "doing": "", "since": null, "progress_at": null, "doing_seconds": 0.0, "quiet_seconds": 0.0, "waits_for": "", "last_seq": 5, "ended": false}, {"run_id": "6b49fb129e7c", "order_id": "f942973c1ffc", "generation": 1, "doing": "", "since": null, "progress_at": null, "doing_seconds": 0.0, "quiet_seconds": 0.0, "waits_for": "", "last_seq": 3, "ended": false}, {"run_id": "a26a6a7702b6", "order_id": "0eadbba5f17a", "generation": 1, "doing": "", "since": null, "progress_at": null, "doing_seconds": 0.0, "quiet_seconds": 0.0, "waits_for": "", "last_seq": 3, "ended": false}, {"run_id": "9e13ff8fa483", "order_id": "c323ead6b023", "generation": 1, "doing": "", "since": null, "progress_at": null, "doing_seconds": 0.0, "quiet_seconds": 0.0, "waits_for": "", "last_seq": 3, "ended": false}, {"run_id": "fab3f20a300f", "order_id": "93cd8fbec08a", "generation": 1, "doing": "", "since": null, "progress_at": null, "doing_seconds": 0.0, "quiet_seconds": 0.0, "waits_for": "", "last_seq": 3, "ended": false}], "done": [], "abilities": ["resume", "teams"]}','7f34a72872ba','[]');
INSERT INTO "drones" VALUES('fae045b3c6c8','mila','machine-of-mila','ioKlAfqElaf71jWmV3JEmmBNce9f7s8u24QSJ5Wvh1M=','{}','{}',1,'none','0','test-host','ddeb64d5ada72ced7d552656d186a2e879e987724f6cc1b085635884c3bf61a2','ed6b416d231f51461415a2713facf2d9c36f1eb6fb18ea7938680ef8994ddef0','2026-11-22 16:34:06.119371',NULL,0,'9edd39875e3e','2026-11-22 16:34:20.950822',NULL,'{"drone_id": "fae045b3c6c8", "machine_id": "machine-of-mila", "boot_id": "9edd39875e3e", "sent_at": "2026-11-22T16:34:20.902870Z", "version": "0", "sandbox": "none", "concurrency": 1, "warm": false, "draining": false, "full": "", "leaving": false, "stopping": false, "runs": [{"run_id": "cb977fd4066c", "order_id": "058bffa666cf", "generation": 1, "doing": "", "since": null, "progress_at": null, "doing_seconds": 0.0, "quiet_seconds": 0.0, "waits_for": "", "last_seq": 3, "ended": false}], "done": [], "abilities": ["resume", "teams"]}','7f34a72872ba','[]');
INSERT INTO "drones" VALUES('c28fc63554db','nino','machine-of-nino','ORe4XrfF2tv0DgMCizolEOJM7MB5P30y2o2MGwIhzgw=','{"os": "linux"}','{"os": "linux"}',2,'none','0','test-host','5ffa948460b06eeb754e4e965e36731bd49da5774ee519b7a94a9f39b6ec4f1a','5752011ddb6781df4b8e11091a1db3b4b10fa4c7fe42a19791d6cde082c1a0c3','2026-11-22 16:34:06.185066',NULL,0,'213fd06acbfd','2026-11-22 16:34:20.950032',NULL,'{"drone_id": "c28fc63554db", "machine_id": "machine-of-nino", "boot_id": "213fd06acbfd", "sent_at": "2026-11-22T16:34:20.909290Z", "version": "0", "sandbox": "none", "concurrency": 2, "warm": false, "draining": true, "full": "", "leaving": false, "stopping": false, "runs": [], "done": [], "abilities": ["resume", "teams"]}','7f34a72872ba','[]');
INSERT INTO "drones" VALUES('04bf3ec5bc60','ada','machine-of-ada','ZHhO4JtQmHPhTMsFZWvIBT4cQEpy8jQuZ9ijaWV6kEk=','{"os": "linux"}','{"os": "linux"}',5,'none','0','test-host','fff508811f54241e9b594922902bf196ab060fc71d16cd4e5e7a1adb8b4fa791','812522d8f97ef753bb912054756d010a60cdf146ea8c25e37b6e1512d38d1dfe','2026-11-22 16:34:06.953726',NULL,0,'809079c14d95','2026-11-22 16:34:20.930757',NULL,'{"drone_id": "04bf3ec5bc60", "machine_id": "machine-of-ada", "boot_id": "809079c14d95", "sent_at": "2026-11-22T16:34:20.909910Z", "version": "0", "sandbox": "none", "concurrency": 5, "warm": false, "draining": false, "full": "", "leaving": false, "stopping": false, "runs": [{"run_id": "a51718cb0016", "order_id": "b2d00d9b68e4", "generation": 1, "doing": "", "since": null, "progress_at": null, "doing_seconds": 0.0, "quiet_seconds": 0.0, "waits_for": "", "last_seq": 3, "ended": false}], "done": [], "abilities": ["resume", "teams"]}','7f34a72872ba','[]');
INSERT INTO "drones" VALUES('5df1b0a14ef0','dora','machine-of-dora','QH7Rr/KN8TeupKP7KuWsPnoYmMolw4H/fmTFYY89XW4=','{}','{}',2,'none','','test-host','326117c1600956c1a77d10d6637ff9329a67803f8b99ebae6fd4d442eca1478e','96b6551bbd721f41150ff1e6e079af8737df0eb0300f0c7f49f37158e9cd966d','2026-11-22 16:34:06.978994',NULL,0,NULL,NULL,NULL,NULL,'7f34a72872ba','[]');
INSERT INTO "drones" VALUES('b3fb3fc3d71b','sale','machine-of-sale','F+dNzd72BBWI0s9C0i0+OXmCufyGDUo+2td5zXzpgEU=','{}','{}',2,'none','','test-host','0ab59379f74807533e257fbfb89d6435be175abcf709192402884c3dd327735e','c2b3811f36125b536c7e2de20689db7d1e3ade461f1586490bb1c6c4f399cafc','2026-11-22 16:34:07.055790','2026-11-22 16:34:13.474289',0,NULL,NULL,NULL,NULL,'7f34a72872ba','[]');
INSERT INTO "drones" VALUES('3b7fb4e7416a','lena','machine-of-lena','aecS3Wk2K6moEldGwzFez3guSSgcRZArfKL0XQHbUBU=','{}','{}',2,'none','0','test-host','ec5da2e92479a585558bacd604ce7fd16cc994bac0ef58389f9771b179d10a80','73dfd15dbf668ded417a41e4930736fc6f2ba1492e20d6a761db130fb5e266c5','2026-11-22 16:34:19.808892','2026-11-22 16:34:20.976538',0,'4f703252253a','2026-11-22 16:34:20.940881',NULL,'{"drone_id": "3b7fb4e7416a", "machine_id": "machine-of-lena", "boot_id": "4f703252253a", "sent_at": "2026-11-22T16:34:20.910456Z", "version": "0", "sandbox": "none", "concurrency": 2, "warm": false, "draining": false, "full": "", "leaving": false, "stopping": false, "runs": [], "done": [], "abilities": ["resume", "teams"]}','7f34a72872ba','[]');
CREATE TABLE inbox (
	id VARCHAR(12) NOT NULL, 
	drone_id VARCHAR(12) NOT NULL, 
	run_id VARCHAR(12), 
	body JSON NOT NULL, 
	created_at DATETIME NOT NULL, 
	sent_at DATETIME, 
	done_at DATETIME, 
	organization_id VARCHAR(12) NOT NULL, 
	CONSTRAINT pk_inbox PRIMARY KEY (id), 
	CONSTRAINT fk_inbox_drone_id_drones FOREIGN KEY(drone_id) REFERENCES drones (id), 
	CONSTRAINT fk_inbox_organization_id_organizations FOREIGN KEY(organization_id) REFERENCES organizations (id)
);
INSERT INTO "inbox" VALUES('ffabdbce7236','0a536298beea','3561c8386766','{"kind": "confirm", "run_id": "3561c8386766", "last_seq": 5}','2026-11-22 16:34:07.688366','2026-11-22 16:34:07.706031',NULL,'7f34a72872ba');
INSERT INTO "inbox" VALUES('6694a616fdb0','0a536298beea','87a5c01ba07f','{"kind": "say", "run_id": "87a5c01ba07f", "text": "one more thing", "after": true, "interrupt": false}','2026-11-22 16:34:07.920441','2026-11-22 16:34:07.935470',NULL,'7f34a72872ba');
INSERT INTO "inbox" VALUES('11964666f51b','0a536298beea','87a5c01ba07f','{"kind": "confirm", "run_id": "87a5c01ba07f", "last_seq": 4}','2026-11-22 16:34:08.017751','2026-11-22 16:34:08.079543',NULL,'7f34a72872ba');
INSERT INTO "inbox" VALUES('ae4abf57adad','0a536298beea','385d55bc448e','{"kind": "confirm", "run_id": "385d55bc448e", "last_seq": 4}','2026-11-22 16:34:08.361985','2026-11-22 16:34:08.389133',NULL,'7f34a72872ba');
INSERT INTO "inbox" VALUES('19e082d9e304','0a536298beea','2d921b03cdc9','{"kind": "confirm", "run_id": "2d921b03cdc9", "last_seq": 4}','2026-11-22 16:34:08.630121','2026-11-22 16:34:08.634410',NULL,'7f34a72872ba');
INSERT INTO "inbox" VALUES('2c146518aa05','0a536298beea','39f19ff28184','{"kind": "cancel", "run_id": "39f19ff28184", "generation": 1, "reason": "by kim: wrong branch: main"}','2026-11-22 16:34:09.122720','2026-11-22 16:34:09.131360',NULL,'7f34a72872ba');
INSERT INTO "inbox" VALUES('b62ab34a3931','0a536298beea','39f19ff28184','{"kind": "confirm", "run_id": "39f19ff28184", "last_seq": 4}','2026-11-22 16:34:09.164929','2026-11-22 16:34:09.213418',NULL,'7f34a72872ba');
INSERT INTO "inbox" VALUES('7582f303cf36','0a536298beea','8fc69f9d66e6','{"kind": "cancel", "run_id": "8fc69f9d66e6", "generation": 1, "reason": "by system"}','2026-11-22 16:34:09.422848','2026-11-22 16:34:09.792955',NULL,'7f34a72872ba');
INSERT INTO "inbox" VALUES('b6abdb7f2048','0a536298beea','8fc69f9d66e6','{"kind": "confirm", "run_id": "8fc69f9d66e6", "last_seq": 4}','2026-11-22 16:34:09.458378','2026-11-22 16:34:09.792955',NULL,'7f34a72872ba');
INSERT INTO "inbox" VALUES('b02e25a49fd5','04bf3ec5bc60','d4202286b4ee','{"kind": "cancel", "run_id": "d4202286b4ee", "generation": 1, "reason": "by kim: too slow"}','2026-11-22 16:34:09.879217','2026-11-22 16:34:09.909940',NULL,'7f34a72872ba');
INSERT INTO "inbox" VALUES('8135dfeb740b','0a536298beea','5e7f98221be2','{"kind": "cancel", "run_id": "5e7f98221be2", "generation": 1, "reason": "by kim: changed my mind"}','2026-11-22 16:34:10.139829','2026-11-22 16:34:10.155635',NULL,'7f34a72872ba');
INSERT INTO "inbox" VALUES('ce415391390c','0a536298beea','a541eb083acb','{"kind": "cancel", "run_id": "a541eb083acb", "generation": 1, "reason": "by system"}','2026-11-22 16:34:10.462725','2026-11-22 16:34:10.551784',NULL,'7f34a72872ba');
INSERT INTO "inbox" VALUES('d4b8104de3fd','0a536298beea','e2549a89c239','{"kind": "decide", "run_id": "e2549a89c239", "call_id": "c1", "approved": true, "comment": ""}','2026-11-22 16:34:12.491651','2026-11-22 16:34:12.512178',NULL,'7f34a72872ba');
INSERT INTO "inbox" VALUES('fb20dc13f7ef','04bf3ec5bc60','c89233d569a5','{"kind": "confirm", "run_id": "c89233d569a5", "last_seq": 2}','2026-11-22 16:34:13.691541','2026-11-22 16:34:13.778105',NULL,'7f34a72872ba');
INSERT INTO "inbox" VALUES('72b9f697dd08','04bf3ec5bc60','ef36db080a10','{"kind": "confirm", "run_id": "ef36db080a10", "last_seq": 2}','2026-11-22 16:34:15.691774','2026-11-22 16:34:15.764311',NULL,'7f34a72872ba');
INSERT INTO "inbox" VALUES('d00d4877652e','0a536298beea','00f3a8b2ec10','{"kind": "confirm", "run_id": "00f3a8b2ec10", "last_seq": 2}','2026-11-22 16:34:15.840330','2026-11-22 16:34:16.017502',NULL,'7f34a72872ba');
INSERT INTO "inbox" VALUES('b6ae643b0bc0','0a536298beea','154f31e58147','{"kind": "confirm", "run_id": "154f31e58147", "last_seq": 2}','2026-11-22 16:34:15.862004','2026-11-22 16:34:16.017502',NULL,'7f34a72872ba');
INSERT INTO "inbox" VALUES('94d236e224b6','0a536298beea','a570fd9198cc','{"kind": "confirm", "run_id": "a570fd9198cc", "last_seq": 2}','2026-11-22 16:34:15.935397','2026-11-22 16:34:16.017502',NULL,'7f34a72872ba');
INSERT INTO "inbox" VALUES('ebc2eb0d855c','0a536298beea','a570fd9198cc','{"kind": "confirm", "run_id": "a570fd9198cc", "last_seq": 4}','2026-11-22 16:34:15.946596','2026-11-22 16:34:16.017502',NULL,'7f34a72872ba');
INSERT INTO "inbox" VALUES('a072d294a889','0a536298beea','7f17a8da655d','{"kind": "confirm", "run_id": "7f17a8da655d", "last_seq": 5}','2026-11-22 16:34:16.713588','2026-11-22 16:34:16.737077',NULL,'7f34a72872ba');
INSERT INTO "inbox" VALUES('6f1f9d48c5db','0a536298beea','203a19ceb2ad','{"kind": "confirm", "run_id": "203a19ceb2ad", "last_seq": 4}','2026-11-22 16:34:17.234541','2026-11-22 16:34:17.261610',NULL,'7f34a72872ba');
INSERT INTO "inbox" VALUES('90b532466a12','0a536298beea','de8625bf5866','{"kind": "confirm", "run_id": "de8625bf5866", "last_seq": 5}','2026-11-22 16:34:17.754263','2026-11-22 16:34:17.771247',NULL,'7f34a72872ba');
INSERT INTO "inbox" VALUES('e2e165403cd1','0a536298beea','a26a6a7702b6','{"kind": "cancel", "run_id": "a26a6a7702b6", "generation": 1, "reason": "by kim: the task was canceled"}','2026-11-22 16:34:18.040349','2026-11-22 16:34:18.053667',NULL,'7f34a72872ba');
INSERT INTO "inbox" VALUES('b5266c23ed15','0a536298beea','d71bfad03696','{"kind": "resend", "run_id": "d71bfad03696", "from_seq": 3}','2026-11-22 16:34:19.131809','2026-11-22 16:34:19.155390',NULL,'7f34a72872ba');
INSERT INTO "inbox" VALUES('0f249f46e953','0a536298beea','b38c786667c0','{"kind": "confirm", "run_id": "b38c786667c0", "last_seq": 4}','2026-11-22 16:34:20.658292',NULL,NULL,'7f34a72872ba');
INSERT INTO "inbox" VALUES('5b8a39606adb','0a536298beea','d71bfad03696','{"kind": "confirm", "run_id": "d71bfad03696", "last_seq": 4}','2026-11-22 16:34:20.795343',NULL,NULL,'7f34a72872ba');
INSERT INTO "inbox" VALUES('dab016a32853','0a536298beea','d58d486cb562','{"kind": "confirm", "run_id": "d58d486cb562", "last_seq": 7}','2026-11-22 16:34:20.838915',NULL,NULL,'7f34a72872ba');
CREATE TABLE join_tokens (
	id VARCHAR(12) NOT NULL, 
	secret_hash VARCHAR(64) NOT NULL, 
	labels JSON NOT NULL, 
	uses INTEGER NOT NULL, 
	used INTEGER NOT NULL, 
	created_at DATETIME NOT NULL, 
	expires_at DATETIME NOT NULL, 
	revoked_at DATETIME, 
	organization_id VARCHAR(12) NOT NULL, serves JSON DEFAULT '[]' NOT NULL, 
	CONSTRAINT pk_join_tokens PRIMARY KEY (id), 
	CONSTRAINT uq_join_tokens_secret_hash UNIQUE (secret_hash), 
	CONSTRAINT fk_join_tokens_organization_id_organizations FOREIGN KEY(organization_id) REFERENCES organizations (id)
);
INSERT INTO "join_tokens" VALUES('8457d5f7aab5','fcd3400c3055448abd5e0bd2c54dc7aacc3d8240850c9856c18b6d0aa7ae6674','{}',1,1,'2026-11-22 16:34:05.993148','2026-11-22 17:34:05.993148',NULL,'7f34a72872ba','[]');
INSERT INTO "join_tokens" VALUES('bea308474c69','756df7095d432e5152c284e6a62ae04c2a87315e7f3b68fa60b97fec23446105','{}',1,1,'2026-11-22 16:34:06.105381','2026-11-22 17:34:06.105381',NULL,'7f34a72872ba','[]');
INSERT INTO "join_tokens" VALUES('ec1e4f6fcd33','c760e9314cc6a2fe3e00d0ff6a5de19425c1cf6d469ae917550be2b7de019667','{}',1,1,'2026-11-22 16:34:06.172294','2026-11-22 17:34:06.172294',NULL,'7f34a72872ba','[]');
INSERT INTO "join_tokens" VALUES('242265866ed3','0e31ff3b433a259918143fcaabb7e12220c05c1d23014f9d3ae0f3cb5b8cfc70','{}',1,1,'2026-11-22 16:34:06.950213','2026-11-22 17:34:06.950213',NULL,'7f34a72872ba','[]');
INSERT INTO "join_tokens" VALUES('b14304b44728','1102a44088ae3623dfee72ea62f725fedbc9f496ddf37020c4321b85492aa822','{}',1,1,'2026-11-22 16:34:06.968306','2026-11-22 17:34:06.968306',NULL,'7f34a72872ba','[]');
INSERT INTO "join_tokens" VALUES('4cad85ae21e0','f893dce50536a536133ef7d217ca8d6949d0a3ba0f3ac5a757eb95103f9556b1','{}',1,1,'2026-11-22 16:34:07.005367','2026-11-22 17:34:07.005367',NULL,'7f34a72872ba','[]');
INSERT INTO "join_tokens" VALUES('4ea375efbc60','129f58544faaf92f339e5998434a6d09b053caa76b778e3f44cbaaf31c522c25','{}',1,1,'2026-11-22 16:34:19.801255','2026-11-22 17:34:19.801255',NULL,'7f34a72872ba','[]');
CREATE TABLE key_pairs (
	id VARCHAR(16) NOT NULL, 
	public_key VARCHAR NOT NULL, 
	sealed_private_key VARCHAR NOT NULL, 
	created_at DATETIME NOT NULL, 
	retired_at DATETIME, 
	CONSTRAINT pk_key_pairs PRIMARY KEY (id)
);
INSERT INTO "key_pairs" VALUES('0dd6baec7d04b29b','fyhA/xC44rzHfWuYIOynirem87g4aFCFQo4U85Cog2s=','5jvYd3pKtoS9VqpMclUxgExmx30Q8w4IkLDe61rdQoF04DmuKh4b7fL1oPGzmC95Gw5NaqUeLqAI/lQFEQ2nG1WtH+D1B7y3qKgq9NFIYg4NeIgN','2026-11-22 16:34:05.944349',NULL);
CREATE TABLE login_links (
	id VARCHAR(12) NOT NULL, 
	secret_hash VARCHAR(64) NOT NULL, 
	role VARCHAR(16) NOT NULL, 
	created_at DATETIME NOT NULL, 
	expires_at DATETIME NOT NULL, 
	used_at DATETIME, 
	organization_id VARCHAR(12) NOT NULL, everywhere BOOLEAN DEFAULT 0 NOT NULL, 
	CONSTRAINT pk_login_links PRIMARY KEY (id), 
	CONSTRAINT uq_login_links_secret_hash UNIQUE (secret_hash), 
	CONSTRAINT fk_login_links_organization_id_organizations FOREIGN KEY(organization_id) REFERENCES organizations (id)
);
CREATE TABLE orders (
	id VARCHAR(12) NOT NULL, 
	number INTEGER NOT NULL, 
	user VARCHAR(128) NOT NULL, 
	project_id VARCHAR(12) NOT NULL, 
	session_id VARCHAR(12) NOT NULL, 
	provider_id VARCHAR(12) NOT NULL, 
	model VARCHAR(255) NOT NULL, 
	mode VARCHAR(16) NOT NULL, 
	priority INTEGER NOT NULL, 
	approve VARCHAR(16) NOT NULL, 
	allow JSON NOT NULL, 
	limits JSON NOT NULL, 
	prompt TEXT NOT NULL, 
	idempotency_key VARCHAR(255), 
	request_hash VARCHAR(64), 
	wanted_drone_id VARCHAR(12), 
	wanted_labels JSON NOT NULL, 
	drone_id VARCHAR(12), 
	run_id VARCHAR(12), 
	generation INTEGER NOT NULL, 
	attempt INTEGER NOT NULL, 
	lost_runs INTEGER NOT NULL, 
	max_attempts INTEGER NOT NULL, 
	grant_until DATETIME, 
	status VARCHAR(24) NOT NULL, 
	reason TEXT NOT NULL, 
	exit_status VARCHAR(32), 
	verification VARCHAR(24), 
	created_at DATETIME NOT NULL, 
	started_at DATETIME, 
	ended_at DATETIME, 
	step_count INTEGER NOT NULL, 
	response TEXT, 
	branch VARCHAR(255), 
	base_commit VARCHAR(64), 
	head_commit VARCHAR(64), 
	pushed BOOLEAN NOT NULL, 
	push_error TEXT, 
	late_refs JSON NOT NULL, 
	result_run_id VARCHAR(12), 
	patch_sha256 VARCHAR(64), 
	patch_bytes INTEGER NOT NULL, 
	bundle_sha256 VARCHAR(64), 
	receipt JSON, 
	organization_id VARCHAR(12) NOT NULL, fresh_generation INTEGER DEFAULT '0' NOT NULL, renewed_generation INTEGER DEFAULT '0' NOT NULL, purpose VARCHAR(16) DEFAULT 'work' NOT NULL, asked JSON, agent_id VARCHAR(12), task_id VARCHAR(32), pull_request JSON, 
	CONSTRAINT pk_orders PRIMARY KEY (id), 
	CONSTRAINT uq_orders_idempotency UNIQUE (organization_id, idempotency_key), 
	CONSTRAINT fk_orders_project_id_projects FOREIGN KEY(project_id) REFERENCES projects (id), 
	CONSTRAINT fk_orders_session_id_sessions FOREIGN KEY(session_id) REFERENCES sessions (id), 
	CONSTRAINT fk_orders_provider_id_providers FOREIGN KEY(provider_id) REFERENCES providers (id), 
	CONSTRAINT fk_orders_wanted_drone_id_drones FOREIGN KEY(wanted_drone_id) REFERENCES drones (id), 
	CONSTRAINT fk_orders_drone_id_drones FOREIGN KEY(drone_id) REFERENCES drones (id), 
	CONSTRAINT fk_orders_organization_id_organizations FOREIGN KEY(organization_id) REFERENCES organizations (id)
);
INSERT INTO "orders" VALUES('45af5468ef0f',1,'system','64cacf73026f','2128ead397f1','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','succeeded',NULL,NULL,'0a536298beea','{}','0a536298beea','3561c8386766',1,1,0,3,NULL,'succeeded','the model stopped','stopped',NULL,'2026-11-22 16:34:07.117980','2026-11-22 16:34:07.367935','2026-11-22 16:34:07.659679',5,'done',NULL,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',NULL,0,NULL,'[]',NULL,NULL,0,NULL,'null','7f34a72872ba',0,0,'work',NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES('38f9402b0820',2,'system','64cacf73026f','7ebb04d85005','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','succeeded unheard',NULL,NULL,'0a536298beea','{}','0a536298beea','87a5c01ba07f',1,1,0,3,NULL,'succeeded','the model stopped; what a person said last came too late for it (next: fleet submit … --session 7ebb04d85005)','stopped',NULL,'2026-11-22 16:34:07.733727','2026-11-22 16:34:07.801565','2026-11-22 16:34:08.001622',4,'done',NULL,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',NULL,0,NULL,'[]',NULL,NULL,0,NULL,'null','7f34a72872ba',0,0,'work',NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES('18e3b5b93527',3,'system','64cacf73026f','237aa3fe2b75','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','failed',NULL,NULL,'0a536298beea','{}','0a536298beea','385d55bc448e',1,1,0,3,NULL,'failed','The time limit of 1800 s was reached.','time_limit',NULL,'2026-11-22 16:34:08.133326','2026-11-22 16:34:08.268706','2026-11-22 16:34:08.352804',4,'done',NULL,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',NULL,0,NULL,'[]',NULL,NULL,0,NULL,'null','7f34a72872ba',0,0,'work',NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES('0179d5d5bfc6',4,'system','64cacf73026f','f8ea6dbb4134','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','failed last attempt',NULL,NULL,'0a536298beea','{}','0a536298beea','2d921b03cdc9',1,1,1,1,NULL,'failed','the provider cannot be reached; that was the last of 1 attempts','model_error',NULL,'2026-11-22 16:34:08.502332','2026-11-22 16:34:08.538040','2026-11-22 16:34:08.623795',4,'done',NULL,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',NULL,0,NULL,'[]',NULL,NULL,0,NULL,'null','7f34a72872ba',0,0,'work',NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES('2263b569a566',5,'system','64cacf73026f','b3681ccf96c3','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','failed lost',NULL,NULL,'04bf3ec5bc60','{}','04bf3ec5bc60','082d7f66ce53',1,1,1,1,NULL,'failed','lost: drone ada was started again, and the run did not survive that; that was the last of 1 attempts','lost',NULL,'2026-11-22 16:34:08.695329','2026-11-22 16:34:08.793921','2026-11-22 16:34:08.887289',3,NULL,NULL,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',NULL,0,NULL,'[]',NULL,NULL,0,NULL,'null','7f34a72872ba',0,0,'work',NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES('2ed3624230b0',6,'system','64cacf73026f','475a6c9423af','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','canceled before',NULL,NULL,NULL,'{"gpu": "yes"}',NULL,NULL,0,0,0,3,NULL,'canceled','canceled by kim: not needed, before it began','canceled',NULL,'2026-11-22 16:34:08.945750',NULL,'2026-11-22 16:34:08.979494',0,NULL,NULL,NULL,NULL,0,NULL,'[]',NULL,NULL,0,NULL,'{"found": 0, "ended": 0, "survivors": 0, "at": "2026-11-22T16:34:08.979446Z", "unreachable_since": null}','7f34a72872ba',0,0,'work',NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES('1e4f89338e62',7,'system','64cacf73026f','50cfbd60a10d','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','canceled with receipt',NULL,NULL,'0a536298beea','{}','0a536298beea','39f19ff28184',1,1,0,3,NULL,'canceled','canceled by kim: wrong branch: main','canceled',NULL,'2026-11-22 16:34:08.995888','2026-11-22 16:34:09.059957','2026-11-22 16:34:09.158790',4,'done',NULL,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',NULL,0,NULL,'[]',NULL,NULL,0,NULL,'{"found": 0, "ended": 0, "survivors": 0, "at": "2026-11-22T16:34:09.157923Z", "unreachable_since": null}','7f34a72872ba',0,0,'work',NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES('4373695e7c2b',8,'system','64cacf73026f','70ddeef275f2','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','canceled after end',NULL,NULL,'0a536298beea','{}','0a536298beea','8fc69f9d66e6',1,1,0,3,NULL,'canceled','canceled by system; it had just ended by itself: the model stopped','canceled',NULL,'2026-11-22 16:34:09.239770','2026-11-22 16:34:09.326605','2026-11-22 16:34:09.449450',4,'done',NULL,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',NULL,0,NULL,'[]',NULL,NULL,0,NULL,'{"found": 0, "ended": 0, "survivors": 0, "at": "2026-11-22T16:34:09.448192Z", "unreachable_since": null}','7f34a72872ba',0,0,'work',NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES('8cf0bf8e3309',9,'system','64cacf73026f','2bce38a8b900','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','canceled with loss',NULL,NULL,'04bf3ec5bc60','{}','04bf3ec5bc60','d4202286b4ee',1,1,0,3,NULL,'canceled','canceled by kim: too slow; drone ada was started again, and the run did not survive that','canceled',NULL,'2026-11-22 16:34:09.566941','2026-11-22 16:34:09.795595','2026-11-22 16:34:09.950520',3,NULL,NULL,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',NULL,0,NULL,'[]',NULL,NULL,0,NULL,'{"found": 0, "ended": 0, "survivors": 0, "at": "2026-11-22T16:34:09.949861Z", "unreachable_since": null}','7f34a72872ba',0,0,'work',NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES('a4ca462dbecb',10,'system','64cacf73026f','1c5e7032d778','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','canceling',NULL,NULL,'0a536298beea','{}','0a536298beea','5e7f98221be2',1,1,0,3,NULL,'canceling','cancel asked for by kim: changed my mind; waits for the drone''s receipt',NULL,NULL,'2026-11-22 16:34:09.991158','2026-11-22 16:34:10.090439',NULL,3,NULL,NULL,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',NULL,0,NULL,'[]',NULL,NULL,0,NULL,NULL,'7f34a72872ba',0,0,'work',NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES('b9136af5f792',11,'system','64cacf73026f','109a3645c796','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','canceling unnamed',NULL,NULL,'0a536298beea','{}','0a536298beea','a541eb083acb',1,1,0,3,NULL,'canceling','cancel asked for by system; waits for the drone''s receipt',NULL,NULL,'2026-11-22 16:34:10.203943','2026-11-22 16:34:10.319446',NULL,3,NULL,NULL,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',NULL,0,NULL,'[]',NULL,NULL,0,NULL,NULL,'7f34a72872ba',0,0,'work',NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES('e03e3c9c650a',12,'system','64cacf73026f','5a502b90868f','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','running',NULL,NULL,'0a536298beea','{}','0a536298beea','29bffb9ef521',1,1,0,3,NULL,'running','placed on oka: asked for by name',NULL,NULL,'2026-11-22 16:34:10.626658','2026-11-22 16:34:10.797908',NULL,3,NULL,NULL,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',NULL,0,NULL,'[]',NULL,NULL,0,NULL,NULL,'7f34a72872ba',0,0,'work',NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES('b2d00d9b68e4',13,'system','64cacf73026f','262033569866','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','running free choice',NULL,NULL,NULL,'{}','04bf3ec5bc60','a51718cb0016',1,1,0,3,NULL,'running','placed on ada: has the repository already, and a free slot',NULL,NULL,'2026-11-22 16:34:10.911129','2026-11-22 16:34:11.704381',NULL,3,NULL,NULL,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',NULL,0,NULL,'[]',NULL,NULL,0,NULL,NULL,'7f34a72872ba',0,0,'work',NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES('b0826109453e',14,'system','64cacf73026f','cf57e194ad70','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','awaiting',NULL,NULL,'0a536298beea','{}','0a536298beea','b49d983b1986',1,1,0,3,NULL,'awaiting_approval','waits for a person: may shell be run? It changes files: rm x. (next: fleet approve b0826109453e, or fleet deny b0826109453e)',NULL,NULL,'2026-11-22 16:34:11.851389','2026-11-22 16:34:11.947239',NULL,4,NULL,NULL,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',NULL,0,NULL,'[]',NULL,NULL,0,NULL,NULL,'7f34a72872ba',0,0,'work',NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES('1e31eb84dc5e',15,'system','64cacf73026f','fc3412d85c1f','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','answer on its way',NULL,NULL,'0a536298beea','{}','0a536298beea','e2549a89c239',1,1,0,3,NULL,'awaiting_approval','kim approved the call of shell; its drone is being told',NULL,NULL,'2026-11-22 16:34:12.144812','2026-11-22 16:34:12.266379',NULL,4,NULL,NULL,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',NULL,0,NULL,'[]',NULL,NULL,0,NULL,NULL,'7f34a72872ba',0,0,'work',NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES('d637eaa25f89',16,'system','64cacf73026f','d61c93c89b3e','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','answered',NULL,NULL,'0a536298beea','{}','0a536298beea','9372cd099a1a',1,1,0,3,NULL,'running','goes on: a person approved the call that waited',NULL,NULL,'2026-11-22 16:34:12.546802','2026-11-22 16:34:12.787595',NULL,5,NULL,NULL,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',NULL,0,NULL,'[]',NULL,NULL,0,NULL,NULL,'7f34a72872ba',0,0,'work',NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES('5cca8112991e',17,'system','64cacf73026f','cbbce7d8ec81','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','no drone fits',NULL,NULL,NULL,'{"gpu": "yes"}',NULL,NULL,0,0,0,3,NULL,'queued','no drone has label gpu=yes; labels are ada: os=linux; dora: none; lena: none; mila: none; nino: os=linux; oka: none',NULL,NULL,'2026-11-22 16:34:13.280988',NULL,NULL,0,NULL,NULL,NULL,NULL,0,NULL,'[]',NULL,NULL,0,NULL,NULL,'7f34a72872ba',0,0,'work',NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES('7f471c2ae5d6',18,'system','64cacf73026f','262033569866','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','session waits',NULL,NULL,NULL,'{}',NULL,NULL,0,0,0,3,NULL,'queued','waits for order b2d00d9b68e4 of the same session',NULL,NULL,'2026-11-22 16:34:13.294276',NULL,NULL,0,NULL,NULL,NULL,NULL,0,NULL,'[]',NULL,NULL,0,NULL,NULL,'7f34a72872ba',0,0,'work',NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES('bbe5f7531ce3',19,'system','64cacf73026f','cbff3a59a4b1','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','named removed',NULL,NULL,'b3fb3fc3d71b','{}',NULL,NULL,1,0,0,3,NULL,'queued','drone sale, which was asked for by name, was removed (next: fleet cancel bbe5f7531ce3)',NULL,NULL,'2026-11-22 16:34:13.353753',NULL,NULL,0,NULL,NULL,NULL,NULL,0,NULL,'[]',NULL,NULL,0,NULL,NULL,'7f34a72872ba',0,0,'work',NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES('e1ddc6fcc7b7',20,'system','64cacf73026f','7fe268babb7a','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','pausing',NULL,NULL,NULL,'{}',NULL,NULL,1,1,1,3,NULL,'queued','tried again at 17:34:13 UTC (attempt 1 of 3: the repository cannot be reached)',NULL,NULL,'2026-11-22 16:34:13.609961','2026-11-22 16:34:13.682932',NULL,2,NULL,NULL,NULL,NULL,0,NULL,'[]',NULL,NULL,0,NULL,NULL,'7f34a72872ba',0,0,'work',NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES('fc1a6a39bc47',21,'system','64cacf73026f','4423c9dfe7bb','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','assigned never started',NULL,NULL,'5df1b0a14ef0','{}','5df1b0a14ef0','c6969ba91755',1,0,0,3,NULL,'assigned','placed on dora: asked for by name; waits in dora''s queue: the drone was registered but never started (next: drone start)',NULL,NULL,'2026-11-22 16:34:13.844775',NULL,NULL,0,NULL,NULL,NULL,NULL,0,NULL,'[]',NULL,NULL,0,NULL,NULL,'7f34a72872ba',0,0,'work',NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES('058bffa666cf',22,'system','64cacf73026f','e123cdd93afd','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','mila runs',NULL,NULL,'fae045b3c6c8','{}','fae045b3c6c8','cb977fd4066c',1,1,0,3,NULL,'running','placed on mila: asked for by name',NULL,NULL,'2026-11-22 16:34:13.897209','2026-11-22 16:34:14.033361',NULL,3,NULL,NULL,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',NULL,0,NULL,'[]',NULL,NULL,0,NULL,NULL,'7f34a72872ba',0,0,'work',NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES('8b3297207dc2',23,'system','64cacf73026f','efa8ebabee3f','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','assigned busy',NULL,NULL,'fae045b3c6c8','{}','fae045b3c6c8','fbb8c84c463d',1,0,0,3,NULL,'assigned','placed on mila: asked for by name; waits in mila''s queue: the drone is busy: 1 of 1 slots in use',NULL,NULL,'2026-11-22 16:34:14.120937',NULL,NULL,0,NULL,NULL,NULL,NULL,0,NULL,'[]',NULL,NULL,0,NULL,NULL,'7f34a72872ba',0,0,'work',NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES('a3e74f5c8c27',24,'system','64cacf73026f','2ed59373142c','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','taken back',NULL,NULL,NULL,'{"os": "linux"}','04bf3ec5bc60','e5661b48482d',2,0,0,3,NULL,'assigned','taken back from nino: the drone is draining (next: fleet drone resume nino); placed on ada: has os=linux, the only drone that fits and takes work',NULL,NULL,'2026-11-22 16:34:14.225697',NULL,NULL,0,NULL,NULL,NULL,NULL,0,NULL,'[]',NULL,NULL,0,NULL,NULL,'7f34a72872ba',0,0,'work',NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES('6bf2c8cb2975',25,'kim','64cacf73026f','2efe8d5f78ef','d5fa76968352','openai/scripted','plan',-10,'yolo','[]','{"max_iterations": 5, "cost_limit": 0.5, "token_limit": 0, "max_run_seconds": 300.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','Describe agent lead from its instructions.',NULL,NULL,NULL,'{}','04bf3ec5bc60','ef36db080a10',1,1,0,3,NULL,'succeeded','the model stopped','stopped',NULL,'2026-11-22 16:34:15.063282','2026-11-22 16:34:15.651778','2026-11-22 16:34:15.680671',2,'It works.',NULL,NULL,NULL,0,NULL,'[]',NULL,NULL,0,NULL,'null','7f34a72872ba',0,0,'describe','{"agent": "lead", "instructions": "Work.", "instructions_path": null}',NULL,NULL,NULL);
INSERT INTO "orders" VALUES('eaadf09d8f6c',26,'kim','64cacf73026f','d27383463f37','d5fa76968352','openai/scripted','plan',-10,'yolo','[]','{"max_iterations": 5, "cost_limit": 0.5, "token_limit": 0, "max_run_seconds": 300.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','Describe agent backend from its instructions.',NULL,NULL,NULL,'{}','0a536298beea','00f3a8b2ec10',1,1,0,3,NULL,'succeeded','the model stopped','stopped',NULL,'2026-11-22 16:34:15.239627','2026-11-22 16:34:15.791694','2026-11-22 16:34:15.816317',2,'It works.',NULL,NULL,NULL,0,NULL,'[]',NULL,NULL,0,NULL,'null','7f34a72872ba',0,0,'describe','{"agent": "backend", "instructions": "Work.", "instructions_path": null}',NULL,NULL,NULL);
INSERT INTO "orders" VALUES('78ad17083435',27,'kim','64cacf73026f','557b5cd9c2ed','d5fa76968352','openai/scripted','plan',-10,'yolo','[]','{"max_iterations": 5, "cost_limit": 0.5, "token_limit": 0, "max_run_seconds": 300.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','Describe agent free from its instructions.',NULL,NULL,NULL,'{}','0a536298beea','154f31e58147',1,1,0,3,NULL,'succeeded','the model stopped','stopped',NULL,'2026-11-22 16:34:15.341716','2026-11-22 16:34:15.846462','2026-11-22 16:34:15.857659',2,'It works.',NULL,NULL,NULL,0,NULL,'[]',NULL,NULL,0,NULL,'null','7f34a72872ba',0,0,'describe','{"agent": "free", "instructions": "Work.", "instructions_path": null}',NULL,NULL,NULL);
INSERT INTO "orders" VALUES('2d74a4d261e2',28,'kim','64cacf73026f','b3e4ccabb974','d5fa76968352','openai/scripted','plan',-10,'yolo','[]','{"max_iterations": 5, "cost_limit": 0.5, "token_limit": 0, "max_run_seconds": 300.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','Describe agent solo from its instructions.',NULL,NULL,NULL,'{}','0a536298beea','a570fd9198cc',1,1,0,3,NULL,'succeeded','the model stopped','stopped',NULL,'2026-11-22 16:34:15.486562','2026-11-22 16:34:15.913732','2026-11-22 16:34:15.925988',4,'It works.',NULL,NULL,NULL,0,NULL,'[]',NULL,NULL,0,NULL,'null','7f34a72872ba',0,0,'describe','{"agent": "solo", "instructions": "Work.", "instructions_path": null}',NULL,NULL,NULL);
INSERT INTO "orders" VALUES('f942973c1ffc',29,'kim','64cacf73026f','26ad5ec764a4','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','# Task DEFA-0001: in progress

Organization: default
Assigned to: lead (you)
Opened: 2026-11-22 16:34:16 UTC by kim

## Description

  in progress

## Thread

[Nobody has written a comment yet.]

## Your turn

It is your turn on this task, lead. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.
When your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.

Budget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.',NULL,NULL,NULL,'{}','0a536298beea','6b49fb129e7c',1,1,0,3,NULL,'running','placed on oka: has the repository already, and a free slot',NULL,NULL,'2026-11-22 16:34:16.028647','2026-11-22 16:34:16.295280',NULL,3,NULL,NULL,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',NULL,0,NULL,'[]',NULL,NULL,0,NULL,NULL,'7f34a72872ba',0,0,'work','null','3374c3a27a3e','DEFA-0001',NULL);
INSERT INTO "orders" VALUES('459fac5aa244',30,'kim','64cacf73026f','0cde6a91b3d0','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','# Task DEFA-0002: with the user

Organization: default
Assigned to: free (you)
Opened: 2026-11-22 16:34:16 UTC by kim

## Description

  with the user

## Thread

[Nobody has written a comment yet.]

## Your turn

It is your turn on this task, free. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.
When your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.

Budget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.',NULL,NULL,NULL,'{}','0a536298beea','7f17a8da655d',1,1,0,3,NULL,'succeeded','the model stopped','stopped',NULL,'2026-11-22 16:34:16.393774','2026-11-22 16:34:16.567174','2026-11-22 16:34:16.685551',5,'done',NULL,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',NULL,0,NULL,'[]',NULL,NULL,0,NULL,'null','7f34a72872ba',0,0,'work','null','f62378ceabfe','DEFA-0002',NULL);
INSERT INTO "orders" VALUES('8e504c8868d7',31,'kim','64cacf73026f','e83f3e95bdff','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','# Task DEFA-0003: failed

Organization: default
Assigned to: free (you)
Opened: 2026-11-22 16:34:16 UTC by kim

## Description

  failed

## Thread

[Nobody has written a comment yet.]

## Your turn

It is your turn on this task, free. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.
When your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.

Budget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.',NULL,NULL,NULL,'{}','0a536298beea','203a19ceb2ad',1,1,0,3,NULL,'failed','The time limit was reached.','time_limit',NULL,'2026-11-22 16:34:16.857776','2026-11-22 16:34:17.040179','2026-11-22 16:34:17.222991',4,'done',NULL,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',NULL,0,NULL,'[]',NULL,NULL,0,NULL,'null','7f34a72872ba',0,0,'work','null','f62378ceabfe','DEFA-0003',NULL);
INSERT INTO "orders" VALUES('4d27a32df710',32,'kim','64cacf73026f','847134b5c82e','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','# Task DEFA-0004: done

Organization: default
Assigned to: free (you)
Opened: 2026-11-22 16:34:17 UTC by kim

## Description

  done

## Thread

[Nobody has written a comment yet.]

## Your turn

It is your turn on this task, free. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.
When your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.

Budget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.',NULL,NULL,NULL,'{}','0a536298beea','de8625bf5866',1,1,0,3,NULL,'succeeded','the model stopped','stopped',NULL,'2026-11-22 16:34:17.413874','2026-11-22 16:34:17.550422','2026-11-22 16:34:17.725001',5,'done',NULL,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',NULL,0,NULL,'[]',NULL,NULL,0,NULL,'null','7f34a72872ba',0,0,'work','null','f62378ceabfe','DEFA-0004',NULL);
INSERT INTO "orders" VALUES('0eadbba5f17a',33,'kim','64cacf73026f','b6b4ac15f1a6','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','# Task DEFA-0005: canceled

Organization: default
Assigned to: free (you)
Opened: 2026-11-22 16:34:17 UTC by kim

## Description

  canceled

## Thread

[Nobody has written a comment yet.]

## Your turn

It is your turn on this task, free. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.
When your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.

Budget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.',NULL,NULL,NULL,'{}','0a536298beea','a26a6a7702b6',1,1,0,3,NULL,'canceling','cancel asked for by kim: the task was canceled; waits for the drone''s receipt',NULL,NULL,'2026-11-22 16:34:17.887979','2026-11-22 16:34:17.974642',NULL,3,NULL,NULL,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',NULL,0,NULL,'[]',NULL,NULL,0,NULL,NULL,'7f34a72872ba',0,0,'work','null','f62378ceabfe','DEFA-0005',NULL);
INSERT INTO "orders" VALUES('c323ead6b023',34,'kim','64cacf73026f','80d9a5d87b64','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','# Task DEFA-0006: holds solo

Organization: default
Assigned to: solo (you)
Opened: 2026-11-22 16:34:18 UTC by kim

## Description

  holds solo

## Thread

[Nobody has written a comment yet.]

## Your turn

It is your turn on this task, solo. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.
When your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.

Budget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.',NULL,NULL,NULL,'{}','0a536298beea','9e13ff8fa483',1,1,0,3,NULL,'running','placed on oka: has the repository already, and a free slot',NULL,NULL,'2026-11-22 16:34:18.247215','2026-11-22 16:34:18.344584',NULL,3,NULL,NULL,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',NULL,0,NULL,'[]',NULL,NULL,0,NULL,NULL,'7f34a72872ba',0,0,'work','null','cb433639e550','DEFA-0006',NULL);
INSERT INTO "orders" VALUES('b50ac323a892',35,'system','64cacf73026f','b637ed30a453','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','given back',NULL,NULL,'0a536298beea','{}',NULL,NULL,1,1,0,3,NULL,'queued','given back by oka: the drone stops; begins anew: no checkpoint was stored',NULL,NULL,'2026-11-22 16:34:18.459292','2026-11-22 16:34:18.546917',NULL,4,NULL,NULL,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',NULL,0,NULL,'[]',NULL,NULL,0,NULL,NULL,'7f34a72872ba',0,0,'work',NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES('8b7c9dc3f83d',36,'system','64cacf73026f','6837ca70f371','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','queued again',NULL,NULL,'0a536298beea','{}',NULL,NULL,1,1,1,3,NULL,'queued','the provider cannot be reached; queued again (attempt 1 of 3 ended so); begins anew: no checkpoint was stored',NULL,NULL,'2026-11-22 16:34:18.625755','2026-11-22 16:34:18.702352',NULL,4,NULL,NULL,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',NULL,0,NULL,'[]',NULL,NULL,0,NULL,NULL,'7f34a72872ba',0,0,'work',NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES('9d0817cb98bc',37,'system','64cacf73026f','404f4dde5460','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','queued from checkpoint',NULL,NULL,'0a536298beea','{}',NULL,NULL,1,1,1,3,NULL,'queued','the provider cannot be reached; queued again (attempt 1 of 3 ended so); goes on from step 6',NULL,NULL,'2026-11-22 16:34:18.894037','2026-11-22 16:34:19.310010',NULL,7,NULL,NULL,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',NULL,0,NULL,'[]',NULL,NULL,0,NULL,NULL,'7f34a72872ba',0,0,'work',NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES('93cd8fbec08a',38,'system','64cacf73026f','4f5d3dbcf55e','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','withdrawn',NULL,NULL,'0a536298beea','{}','0a536298beea','fab3f20a300f',1,1,0,3,NULL,'running','placed on oka: asked for by name',NULL,NULL,'2026-11-22 16:34:19.382586','2026-11-22 16:34:19.524681',NULL,3,NULL,NULL,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',NULL,0,NULL,'[]',NULL,NULL,0,NULL,NULL,'7f34a72872ba',0,0,'work',NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES('8b2c140ab7bb',39,'system','64cacf73026f','064c8e386079','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','taken back removed',NULL,NULL,'3b7fb4e7416a','{}',NULL,NULL,1,0,0,3,NULL,'queued','taken back from lena: the drone was removed',NULL,NULL,'2026-11-22 16:34:19.830494',NULL,NULL,0,NULL,NULL,NULL,NULL,0,NULL,'[]',NULL,NULL,0,NULL,NULL,'7f34a72872ba',0,0,'work',NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES('6f13e840993b',40,'system','64cacf73026f','c7d3b4371253','d5fa76968352','openai/scripted','build',0,'yolo','[]','{"max_iterations": 50, "cost_limit": 3.0, "token_limit": 0, "max_run_seconds": 1800.0, "command_timeout": 120.0, "max_format_errors": 3, "retry_enabled": true, "max_retries": 3, "base_delay": 2.0, "approval_timeout": 86400.0, "progress_timeout": 900.0, "verify_attempts": 2}','none takes work',NULL,NULL,NULL,'{"none": "here"}',NULL,NULL,0,0,0,3,NULL,'queued','no drone has label none=here; labels are ada: os=linux; dora: none; mila: none; nino: os=linux; oka: none',NULL,NULL,'2026-11-22 16:34:21.030495',NULL,NULL,0,NULL,NULL,NULL,NULL,0,NULL,'[]',NULL,NULL,0,NULL,NULL,'7f34a72872ba',0,0,'work',NULL,NULL,NULL,NULL);
CREATE TABLE organizations (
	id VARCHAR(12) NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	description TEXT NOT NULL, 
	created_at DATETIME NOT NULL, acronym VARCHAR(16) DEFAULT '' NOT NULL, last_task INTEGER DEFAULT '0' NOT NULL, project_id VARCHAR(12), concurrency INTEGER DEFAULT '4' NOT NULL, max_hand_offs INTEGER DEFAULT '20' NOT NULL, paused_at DATETIME, 
	CONSTRAINT pk_organizations PRIMARY KEY (id), 
	CONSTRAINT uq_organizations_name UNIQUE (name)
);
INSERT INTO "organizations" VALUES('7f34a72872ba','default','','2026-11-22 16:34:05.619641','DEFA',7,NULL,4,20,NULL);
CREATE TABLE owners (
	name VARCHAR(64) NOT NULL, 
	holder VARCHAR(64) NOT NULL, 
	expires_at DATETIME NOT NULL, 
	CONSTRAINT pk_owners PRIMARY KEY (name)
);
CREATE TABLE projects (
	id VARCHAR(12) NOT NULL, 
	slug VARCHAR(64) NOT NULL, 
	name VARCHAR(128) NOT NULL, 
	git_url TEXT NOT NULL, 
	sealed_git_url TEXT, 
	branch VARCHAR(255), 
	setup JSON NOT NULL, 
	verify JSON NOT NULL, 
	provider_id VARCHAR(12), 
	budget_usd_day DOUBLE, 
	created_at DATETIME NOT NULL, 
	removed_at DATETIME, 
	organization_id VARCHAR(12) NOT NULL, pull_requests VARCHAR(16) DEFAULT 'never' NOT NULL, trailers JSON DEFAULT '[]' NOT NULL, 
	CONSTRAINT pk_projects PRIMARY KEY (id), 
	CONSTRAINT fk_projects_provider_id_providers FOREIGN KEY(provider_id) REFERENCES providers (id), 
	CONSTRAINT fk_projects_organization_id_organizations FOREIGN KEY(organization_id) REFERENCES organizations (id)
);
INSERT INTO "projects" VALUES('64cacf73026f','app','app','https://git.example/app.git',NULL,NULL,'[]','[]',NULL,NULL,'2026-11-22 16:34:05.961356',NULL,'7f34a72872ba','never','[]');
CREATE TABLE providers (
	id VARCHAR(12) NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	model VARCHAR(255) NOT NULL, 
	api_base TEXT, 
	context_window INTEGER NOT NULL, 
	protocol VARCHAR(8) NOT NULL, 
	params JSON NOT NULL, 
	fallbacks JSON NOT NULL, 
	sealed_key TEXT, 
	key_variable VARCHAR(128), 
	created_at DATETIME NOT NULL, 
	removed_at DATETIME, 
	organization_id VARCHAR(12) NOT NULL, 
	CONSTRAINT pk_providers PRIMARY KEY (id), 
	CONSTRAINT fk_providers_organization_id_organizations FOREIGN KEY(organization_id) REFERENCES organizations (id)
);
INSERT INTO "providers" VALUES('d5fa76968352','scripted','openai/scripted',NULL,0,'auto','{}','[]','i8ZAi/O4P1J3sP3tmhEZXnnQ86FBpL/BgdDAc26cFl/dLVKKegDcrX0nusB3UOZu/A==',NULL,'2026-11-22 16:34:05.956570',NULL,'7f34a72872ba');
CREATE TABLE raw_events (
	id INTEGER NOT NULL, 
	drone_id VARCHAR(12) NOT NULL, 
	entry_id VARCHAR(64) NOT NULL, 
	fields JSON NOT NULL, 
	error TEXT NOT NULL, 
	at DATETIME NOT NULL, 
	organization_id VARCHAR(12) NOT NULL, 
	CONSTRAINT pk_raw_events PRIMARY KEY (id), 
	CONSTRAINT fk_raw_events_organization_id_organizations FOREIGN KEY(organization_id) REFERENCES organizations (id)
);
CREATE TABLE runs (
	id VARCHAR(12) NOT NULL, 
	order_id VARCHAR(12) NOT NULL, 
	drone_id VARCHAR(12) NOT NULL, 
	generation INTEGER NOT NULL, 
	attempt INTEGER NOT NULL, 
	status VARCHAR(16) NOT NULL, 
	exit_status VARCHAR(32), 
	reason TEXT NOT NULL, 
	late BOOLEAN NOT NULL, 
	boot_id VARCHAR(64) NOT NULL, 
	sandbox VARCHAR(32) NOT NULL, 
	started_at DATETIME NOT NULL, 
	ended_at DATETIME, 
	beat_at DATETIME, 
	doing TEXT NOT NULL, 
	last_seq INTEGER NOT NULL, 
	tool_calls INTEGER NOT NULL, 
	input_tokens INTEGER NOT NULL, 
	thinking_tokens INTEGER NOT NULL, 
	output_tokens INTEGER NOT NULL, 
	cost_usd DOUBLE, 
	duration_ms INTEGER NOT NULL, 
	organization_id VARCHAR(12) NOT NULL, doing_since DATETIME, progress_at DATETIME, waits_for VARCHAR(16) DEFAULT '' NOT NULL, resumed_run_id VARCHAR(12), resumed_seq INTEGER DEFAULT '0' NOT NULL, agent_id VARCHAR(12), task_id VARCHAR(32), 
	CONSTRAINT pk_runs PRIMARY KEY (id), 
	CONSTRAINT fk_runs_id_dispatches FOREIGN KEY(id) REFERENCES dispatches (id), 
	CONSTRAINT fk_runs_order_id_orders FOREIGN KEY(order_id) REFERENCES orders (id), 
	CONSTRAINT fk_runs_drone_id_drones FOREIGN KEY(drone_id) REFERENCES drones (id), 
	CONSTRAINT fk_runs_organization_id_organizations FOREIGN KEY(organization_id) REFERENCES organizations (id)
);
INSERT INTO "runs" VALUES('3561c8386766','45af5468ef0f','0a536298beea',1,1,'success','stopped','the model stopped',0,'a3877acdbc40','none','2026-11-22 16:34:07.360956','2026-11-22 16:34:07.651023','2026-11-22 16:34:07.479582','',5,0,5,0,0,0.01,0,'7f34a72872ba','2026-11-22 16:34:07.388827','2026-11-22 16:34:07.479582','',NULL,0,NULL,NULL);
INSERT INTO "runs" VALUES('87a5c01ba07f','38f9402b0820','0a536298beea',1,1,'success','stopped','the model stopped',0,'a3877acdbc40','none','2026-11-22 16:34:07.797771','2026-11-22 16:34:07.991279','2026-11-22 16:34:07.885380','',4,0,0,0,0,0.0,0,'7f34a72872ba','2026-11-22 16:34:07.829921','2026-11-22 16:34:07.885380','',NULL,0,NULL,NULL);
INSERT INTO "runs" VALUES('385d55bc448e','18e3b5b93527','0a536298beea',1,1,'failed','time_limit','The time limit of 1800 s was reached.',0,'a3877acdbc40','none','2026-11-22 16:34:08.265106','2026-11-22 16:34:08.350065','2026-11-22 16:34:08.309138','',4,0,0,0,0,0.0,0,'7f34a72872ba','2026-11-22 16:34:08.309138','2026-11-22 16:34:08.309138','',NULL,0,NULL,NULL);
INSERT INTO "runs" VALUES('2d921b03cdc9','0179d5d5bfc6','0a536298beea',1,1,'failed','model_error','the provider cannot be reached',0,'a3877acdbc40','none','2026-11-22 16:34:08.530676','2026-11-22 16:34:08.620730','2026-11-22 16:34:08.607899','',4,0,0,0,0,0.0,0,'7f34a72872ba','2026-11-22 16:34:08.557206','2026-11-22 16:34:08.607899','',NULL,0,NULL,NULL);
INSERT INTO "runs" VALUES('082d7f66ce53','2263b569a566','04bf3ec5bc60',1,1,'lost','lost','drone ada was started again, and the run did not survive that',0,'a9e959193cde','none','2026-11-22 16:34:08.791382','2026-11-22 16:34:08.885543','2026-11-22 16:34:08.827330','',3,0,0,0,0,0.0,0,'7f34a72872ba','2026-11-22 16:34:08.827330','2026-11-22 16:34:08.827330','',NULL,0,NULL,NULL);
INSERT INTO "runs" VALUES('39f19ff28184','1e4f89338e62','0a536298beea',1,1,'preempted','canceled','canceled',0,'a3877acdbc40','none','2026-11-22 16:34:09.057370','2026-11-22 16:34:09.156252','2026-11-22 16:34:09.105729','',4,0,0,0,0,0.0,0,'7f34a72872ba','2026-11-22 16:34:09.083220','2026-11-22 16:34:09.105729','',NULL,0,NULL,NULL);
INSERT INTO "runs" VALUES('8fc69f9d66e6','4373695e7c2b','0a536298beea',1,1,'success','stopped','the model stopped',0,'a3877acdbc40','none','2026-11-22 16:34:09.321737','2026-11-22 16:34:09.445091','2026-11-22 16:34:09.490303','',4,0,0,0,0,0.0,0,'7f34a72872ba','2026-11-22 16:34:09.343064','2026-11-22 16:34:09.343064','',NULL,0,NULL,NULL);
INSERT INTO "runs" VALUES('d4202286b4ee','8cf0bf8e3309','04bf3ec5bc60',1,1,'lost','lost','drone ada was started again, and the run did not survive that',0,'4cb8ca287e45','none','2026-11-22 16:34:09.759431','2026-11-22 16:34:09.948953',NULL,'',3,0,0,0,0,0.0,0,'7f34a72872ba',NULL,NULL,'',NULL,0,NULL,NULL);
INSERT INTO "runs" VALUES('5e7f98221be2','a4ca462dbecb','0a536298beea',1,1,'running',NULL,'',0,'a3877acdbc40','none','2026-11-22 16:34:10.083549',NULL,'2026-11-22 16:34:20.906197','',3,0,0,0,0,0.0,0,'7f34a72872ba','2026-11-22 16:34:10.186445','2026-11-22 16:34:20.906197','',NULL,0,NULL,NULL);
INSERT INTO "runs" VALUES('a541eb083acb','b9136af5f792','0a536298beea',1,1,'running',NULL,'',0,'a3877acdbc40','none','2026-11-22 16:34:10.316962',NULL,'2026-11-22 16:34:20.907249','',3,0,0,0,0,0.0,0,'7f34a72872ba','2026-11-22 16:34:10.373485','2026-11-22 16:34:20.907249','',NULL,0,NULL,NULL);
INSERT INTO "runs" VALUES('29bffb9ef521','e03e3c9c650a','0a536298beea',1,1,'running',NULL,'',0,'a3877acdbc40','none','2026-11-22 16:34:10.784695',NULL,'2026-11-22 16:34:20.908205','',3,0,0,0,0,0.0,0,'7f34a72872ba','2026-11-22 16:34:10.866716','2026-11-22 16:34:20.908205','',NULL,0,NULL,NULL);
INSERT INTO "runs" VALUES('a51718cb0016','b2d00d9b68e4','04bf3ec5bc60',1,1,'running',NULL,'',0,'809079c14d95','none','2026-11-22 16:34:11.689480',NULL,'2026-11-22 16:34:20.931553','',3,0,0,0,0,0.0,0,'7f34a72872ba','2026-11-22 16:34:11.989796','2026-11-22 16:34:20.931553','',NULL,0,NULL,NULL);
INSERT INTO "runs" VALUES('b49d983b1986','b0826109453e','0a536298beea',1,1,'running',NULL,'',0,'a3877acdbc40','none','2026-11-22 16:34:11.937536',NULL,'2026-11-22 16:34:20.915757','',4,0,0,0,0,0.0,0,'7f34a72872ba','2026-11-22 16:34:12.041851','2026-11-22 16:34:20.915757','',NULL,0,NULL,NULL);
INSERT INTO "runs" VALUES('e2549a89c239','1e31eb84dc5e','0a536298beea',1,1,'running',NULL,'',0,'a3877acdbc40','none','2026-11-22 16:34:12.263985',NULL,'2026-11-22 16:34:20.916728','',4,0,0,0,0,0.0,0,'7f34a72872ba','2026-11-22 16:34:12.321916','2026-11-22 16:34:20.916728','',NULL,0,NULL,NULL);
INSERT INTO "runs" VALUES('9372cd099a1a','d637eaa25f89','0a536298beea',1,1,'running',NULL,'',0,'a3877acdbc40','none','2026-11-22 16:34:12.784737',NULL,'2026-11-22 16:34:20.917599','',5,0,0,0,0,0.0,0,'7f34a72872ba','2026-11-22 16:34:12.811345','2026-11-22 16:34:20.917599','',NULL,0,NULL,NULL);
INSERT INTO "runs" VALUES('c89233d569a5','e1ddc6fcc7b7','04bf3ec5bc60',1,1,'failed','refused','the repository cannot be reached',0,'809079c14d95','none','2026-11-22 16:34:13.678275','2026-11-22 16:34:13.687063',NULL,'',2,0,0,0,0,0.0,0,'7f34a72872ba',NULL,NULL,'',NULL,0,NULL,NULL);
INSERT INTO "runs" VALUES('cb977fd4066c','058bffa666cf','fae045b3c6c8',1,1,'running',NULL,'',0,'9edd39875e3e','none','2026-11-22 16:34:14.029960',NULL,'2026-11-22 16:34:20.951511','',3,0,0,0,0,0.0,0,'7f34a72872ba','2026-11-22 16:34:14.097355','2026-11-22 16:34:20.951511','',NULL,0,NULL,NULL);
INSERT INTO "runs" VALUES('ef36db080a10','6bf2c8cb2975','04bf3ec5bc60',1,1,'success','stopped','the model stopped',0,'809079c14d95','none','2026-11-22 16:34:15.642767','2026-11-22 16:34:15.665733',NULL,'',2,0,0,0,0,0.0,0,'7f34a72872ba',NULL,NULL,'',NULL,0,NULL,NULL);
INSERT INTO "runs" VALUES('00f3a8b2ec10','eaadf09d8f6c','0a536298beea',1,1,'success','stopped','the model stopped',0,'a3877acdbc40','none','2026-11-22 16:34:15.789171','2026-11-22 16:34:15.799509',NULL,'',2,0,0,0,0,0.0,0,'7f34a72872ba',NULL,NULL,'',NULL,0,NULL,NULL);
INSERT INTO "runs" VALUES('154f31e58147','78ad17083435','0a536298beea',1,1,'success','stopped','the model stopped',0,'a3877acdbc40','none','2026-11-22 16:34:15.789171','2026-11-22 16:34:15.853884',NULL,'',2,0,0,0,0,0.0,0,'7f34a72872ba',NULL,NULL,'',NULL,0,NULL,NULL);
INSERT INTO "runs" VALUES('a570fd9198cc','2d74a4d261e2','0a536298beea',1,1,'success','stopped','the model stopped',1,'a3877acdbc40','none','2026-11-22 16:34:15.907601','2026-11-22 16:34:15.922263',NULL,'',4,0,0,0,0,0.0,0,'7f34a72872ba',NULL,NULL,'',NULL,0,NULL,NULL);
INSERT INTO "runs" VALUES('6b49fb129e7c','f942973c1ffc','0a536298beea',1,1,'running',NULL,'',0,'a3877acdbc40','none','2026-11-22 16:34:16.287475',NULL,'2026-11-22 16:34:20.918461','',3,0,0,0,0,0.0,0,'7f34a72872ba','2026-11-22 16:34:16.351769','2026-11-22 16:34:20.918461','',NULL,0,'3374c3a27a3e','DEFA-0001');
INSERT INTO "runs" VALUES('7f17a8da655d','459fac5aa244','0a536298beea',1,1,'success','stopped','the model stopped',0,'a3877acdbc40','none','2026-11-22 16:34:16.555407','2026-11-22 16:34:16.679967','2026-11-22 16:34:16.600590','',5,0,0,0,0,0.0,0,'7f34a72872ba','2026-11-22 16:34:16.600590','2026-11-22 16:34:16.600590','',NULL,0,'f62378ceabfe','DEFA-0002');
INSERT INTO "runs" VALUES('203a19ceb2ad','8e504c8868d7','0a536298beea',1,1,'failed','time_limit','The time limit was reached.',0,'a3877acdbc40','none','2026-11-22 16:34:17.037664','2026-11-22 16:34:17.214433','2026-11-22 16:34:17.183459','',4,0,0,0,0,0.0,0,'7f34a72872ba','2026-11-22 16:34:17.183459','2026-11-22 16:34:17.183459','',NULL,0,'f62378ceabfe','DEFA-0003');
INSERT INTO "runs" VALUES('de8625bf5866','4d27a32df710','0a536298beea',1,1,'success','stopped','the model stopped',0,'a3877acdbc40','none','2026-11-22 16:34:17.547691','2026-11-22 16:34:17.715921','2026-11-22 16:34:17.639869','',5,0,0,0,0,0.0,0,'7f34a72872ba','2026-11-22 16:34:17.589902','2026-11-22 16:34:17.639869','',NULL,0,'f62378ceabfe','DEFA-0004');
INSERT INTO "runs" VALUES('a26a6a7702b6','0eadbba5f17a','0a536298beea',1,1,'running',NULL,'',0,'a3877acdbc40','none','2026-11-22 16:34:17.970619',NULL,'2026-11-22 16:34:20.919365','',3,0,0,0,0,0.0,0,'7f34a72872ba','2026-11-22 16:34:18.069377','2026-11-22 16:34:20.919365','',NULL,0,'f62378ceabfe','DEFA-0005');
INSERT INTO "runs" VALUES('9e13ff8fa483','c323ead6b023','0a536298beea',1,1,'running',NULL,'',0,'a3877acdbc40','none','2026-11-22 16:34:18.339501',NULL,'2026-11-22 16:34:20.920296','',3,0,0,0,0,0.0,0,'7f34a72872ba','2026-11-22 16:34:18.392920','2026-11-22 16:34:20.920296','',NULL,0,'cb433639e550','DEFA-0006');
INSERT INTO "runs" VALUES('b38c786667c0','b50ac323a892','0a536298beea',1,1,'preempted','canceled','the drone stops',0,'a3877acdbc40','none','2026-11-22 16:34:18.544221','2026-11-22 16:34:20.645303','2026-11-22 16:34:20.502423','',4,0,0,0,0,0.0,0,'7f34a72872ba','2026-11-22 16:34:18.571665','2026-11-22 16:34:20.502423','',NULL,0,NULL,NULL);
INSERT INTO "runs" VALUES('d71bfad03696','8b7c9dc3f83d','0a536298beea',1,1,'failed','model_error','the provider cannot be reached',0,'a3877acdbc40','none','2026-11-22 16:34:18.693768','2026-11-22 16:34:20.789942','2026-11-22 16:34:20.731924','',4,0,0,0,0,0.0,0,'7f34a72872ba','2026-11-22 16:34:18.764920','2026-11-22 16:34:20.731924','',NULL,0,NULL,NULL);
INSERT INTO "runs" VALUES('d58d486cb562','9d0817cb98bc','0a536298beea',1,1,'failed','model_error','the provider cannot be reached',0,'a3877acdbc40','none','2026-11-22 16:34:19.307415','2026-11-22 16:34:20.827047','2026-11-22 16:34:20.863476','',7,0,10,0,0,0.5,0,'7f34a72872ba','2026-11-22 16:34:19.367476','2026-11-22 16:34:20.766498','',NULL,0,NULL,NULL);
INSERT INTO "runs" VALUES('fab3f20a300f','93cd8fbec08a','0a536298beea',1,1,'running',NULL,'',0,'a3877acdbc40','none','2026-11-22 16:34:19.505908',NULL,'2026-11-22 16:34:20.921269','',3,0,0,0,0,0.0,0,'7f34a72872ba','2026-11-22 16:34:19.622564','2026-11-22 16:34:20.921269','',NULL,0,NULL,NULL);
CREATE TABLE schedules (
	id VARCHAR(12) NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	cron VARCHAR(255) NOT NULL, 
	timezone VARCHAR(64) NOT NULL, 
	missed VARCHAR(8) NOT NULL, 
	next_at DATETIME, 
	task JSON NOT NULL, 
	enabled BOOLEAN NOT NULL, 
	last_at DATETIME, 
	last_task_id VARCHAR(32), 
	last_error TEXT NOT NULL, 
	user VARCHAR(128) NOT NULL, 
	created_at DATETIME NOT NULL, 
	removed_at DATETIME, 
	organization_id VARCHAR(12) NOT NULL, 
	CONSTRAINT pk_schedules PRIMARY KEY (id), 
	CONSTRAINT fk_schedules_organization_id_organizations FOREIGN KEY(organization_id) REFERENCES organizations (id)
);
CREATE TABLE session_entries (
	id VARCHAR(12) NOT NULL, 
	number INTEGER NOT NULL, 
	session_id VARCHAR(12) NOT NULL, 
	parent_id VARCHAR(12), 
	kind VARCHAR(24) NOT NULL, 
	order_id VARCHAR(12), 
	data JSON NOT NULL, 
	at DATETIME NOT NULL, 
	organization_id VARCHAR(12) NOT NULL, 
	CONSTRAINT pk_session_entries PRIMARY KEY (id), 
	CONSTRAINT fk_session_entries_session_id_sessions FOREIGN KEY(session_id) REFERENCES sessions (id), 
	CONSTRAINT fk_session_entries_order_id_orders FOREIGN KEY(order_id) REFERENCES orders (id), 
	CONSTRAINT fk_session_entries_organization_id_organizations FOREIGN KEY(organization_id) REFERENCES organizations (id)
);
INSERT INTO "session_entries" VALUES('ec7df95b0bdc',1,'2128ead397f1',NULL,'turn','45af5468ef0f','{"run": "3561c8386766", "status": "succeeded", "exit_status": "stopped", "error": false}','2026-11-22 16:34:07.674504','7f34a72872ba');
INSERT INTO "session_entries" VALUES('40aa249ae6ee',2,'7ebb04d85005',NULL,'turn','38f9402b0820','{"run": "87a5c01ba07f", "status": "succeeded", "exit_status": "stopped", "error": false}','2026-11-22 16:34:08.006497','7f34a72872ba');
INSERT INTO "session_entries" VALUES('87f9c80e1c6b',3,'237aa3fe2b75',NULL,'turn','18e3b5b93527','{"run": "385d55bc448e", "status": "failed", "exit_status": "time_limit", "error": false}','2026-11-22 16:34:08.356738','7f34a72872ba');
INSERT INTO "session_entries" VALUES('26422b2480bc',4,'f8ea6dbb4134',NULL,'turn','0179d5d5bfc6','{"run": "2d921b03cdc9", "status": "failed", "exit_status": "model_error", "error": true}','2026-11-22 16:34:08.627689','7f34a72872ba');
INSERT INTO "session_entries" VALUES('5a03b5456a4d',5,'b3681ccf96c3',NULL,'turn','2263b569a566','{"run": "082d7f66ce53", "status": "failed", "exit_status": "lost", "error": false}','2026-11-22 16:34:08.892169','7f34a72872ba');
INSERT INTO "session_entries" VALUES('27cb9c0afb45',6,'475a6c9423af',NULL,'turn','2ed3624230b0','{"run": null, "status": "canceled", "exit_status": "canceled", "error": false}','2026-11-22 16:34:08.982830','7f34a72872ba');
INSERT INTO "session_entries" VALUES('56330874487e',7,'50cfbd60a10d',NULL,'turn','1e4f89338e62','{"run": "39f19ff28184", "status": "canceled", "exit_status": "canceled", "error": false}','2026-11-22 16:34:09.162443','7f34a72872ba');
INSERT INTO "session_entries" VALUES('4e3cc00ad753',8,'70ddeef275f2',NULL,'turn','4373695e7c2b','{"run": "8fc69f9d66e6", "status": "canceled", "exit_status": "canceled", "error": false}','2026-11-22 16:34:09.454868','7f34a72872ba');
INSERT INTO "session_entries" VALUES('2b407e5e33dc',9,'2bce38a8b900',NULL,'turn','8cf0bf8e3309','{"run": "d4202286b4ee", "status": "canceled", "exit_status": "canceled", "error": false}','2026-11-22 16:34:09.953897','7f34a72872ba');
INSERT INTO "session_entries" VALUES('ccf05a4488c8',10,'2efe8d5f78ef',NULL,'turn','6bf2c8cb2975','{"run": null, "status": "succeeded", "exit_status": "stopped", "error": false}','2026-11-22 16:34:15.686912','7f34a72872ba');
INSERT INTO "session_entries" VALUES('d7ce64a869d2',11,'d27383463f37',NULL,'turn','eaadf09d8f6c','{"run": null, "status": "succeeded", "exit_status": "stopped", "error": false}','2026-11-22 16:34:15.830555','7f34a72872ba');
INSERT INTO "session_entries" VALUES('46ae87ef7b61',12,'557b5cd9c2ed',NULL,'turn','78ad17083435','{"run": null, "status": "succeeded", "exit_status": "stopped", "error": false}','2026-11-22 16:34:15.860818','7f34a72872ba');
INSERT INTO "session_entries" VALUES('7ee84595768b',13,'b3e4ccabb974',NULL,'turn','2d74a4d261e2','{"run": null, "status": "succeeded", "exit_status": "stopped", "error": false}','2026-11-22 16:34:15.934136','7f34a72872ba');
INSERT INTO "session_entries" VALUES('ce7a8c225f6e',14,'0cde6a91b3d0',NULL,'turn','459fac5aa244','{"run": "7f17a8da655d", "status": "succeeded", "exit_status": "stopped", "error": false}','2026-11-22 16:34:16.691803','7f34a72872ba');
INSERT INTO "session_entries" VALUES('06b1a24e861c',15,'e83f3e95bdff',NULL,'turn','8e504c8868d7','{"run": "203a19ceb2ad", "status": "failed", "exit_status": "time_limit", "error": false}','2026-11-22 16:34:17.226869','7f34a72872ba');
INSERT INTO "session_entries" VALUES('a721e9411ce9',16,'847134b5c82e',NULL,'turn','4d27a32df710','{"run": "de8625bf5866", "status": "succeeded", "exit_status": "stopped", "error": false}','2026-11-22 16:34:17.738648','7f34a72872ba');
CREATE TABLE sessions (
	id VARCHAR(12) NOT NULL, 
	project_id VARCHAR(12) NOT NULL, 
	name VARCHAR(255) NOT NULL, 
	mode VARCHAR(16) NOT NULL, 
	approve VARCHAR(16), 
	allow JSON NOT NULL, 
	leaf_id VARCHAR(12), 
	compact TEXT, 
	forked_from_id VARCHAR(12), 
	created_at DATETIME NOT NULL, 
	organization_id VARCHAR(12) NOT NULL, task_id VARCHAR(32), 
	CONSTRAINT pk_sessions PRIMARY KEY (id), 
	CONSTRAINT fk_sessions_project_id_projects FOREIGN KEY(project_id) REFERENCES projects (id), 
	CONSTRAINT fk_sessions_organization_id_organizations FOREIGN KEY(organization_id) REFERENCES organizations (id)
);
INSERT INTO "sessions" VALUES('2128ead397f1','64cacf73026f','','build',NULL,'[]','ec7df95b0bdc',NULL,NULL,'2026-11-22 16:34:07.117855','7f34a72872ba',NULL);
INSERT INTO "sessions" VALUES('7ebb04d85005','64cacf73026f','','build',NULL,'[]','40aa249ae6ee',NULL,NULL,'2026-11-22 16:34:07.733613','7f34a72872ba',NULL);
INSERT INTO "sessions" VALUES('237aa3fe2b75','64cacf73026f','','build',NULL,'[]','87f9c80e1c6b',NULL,NULL,'2026-11-22 16:34:08.133178','7f34a72872ba',NULL);
INSERT INTO "sessions" VALUES('f8ea6dbb4134','64cacf73026f','','build',NULL,'[]',NULL,NULL,NULL,'2026-11-22 16:34:08.502216','7f34a72872ba',NULL);
INSERT INTO "sessions" VALUES('b3681ccf96c3','64cacf73026f','','build',NULL,'[]','5a03b5456a4d',NULL,NULL,'2026-11-22 16:34:08.695219','7f34a72872ba',NULL);
INSERT INTO "sessions" VALUES('475a6c9423af','64cacf73026f','','build',NULL,'[]','27cb9c0afb45',NULL,NULL,'2026-11-22 16:34:08.945634','7f34a72872ba',NULL);
INSERT INTO "sessions" VALUES('50cfbd60a10d','64cacf73026f','','build',NULL,'[]','56330874487e',NULL,NULL,'2026-11-22 16:34:08.995788','7f34a72872ba',NULL);
INSERT INTO "sessions" VALUES('70ddeef275f2','64cacf73026f','','build',NULL,'[]','4e3cc00ad753',NULL,NULL,'2026-11-22 16:34:09.239649','7f34a72872ba',NULL);
INSERT INTO "sessions" VALUES('2bce38a8b900','64cacf73026f','','build',NULL,'[]','2b407e5e33dc',NULL,NULL,'2026-11-22 16:34:09.566829','7f34a72872ba',NULL);
INSERT INTO "sessions" VALUES('1c5e7032d778','64cacf73026f','','build',NULL,'[]',NULL,NULL,NULL,'2026-11-22 16:34:09.991009','7f34a72872ba',NULL);
INSERT INTO "sessions" VALUES('109a3645c796','64cacf73026f','','build',NULL,'[]',NULL,NULL,NULL,'2026-11-22 16:34:10.203832','7f34a72872ba',NULL);
INSERT INTO "sessions" VALUES('5a502b90868f','64cacf73026f','','build',NULL,'[]',NULL,NULL,NULL,'2026-11-22 16:34:10.626539','7f34a72872ba',NULL);
INSERT INTO "sessions" VALUES('262033569866','64cacf73026f','','build',NULL,'[]',NULL,NULL,NULL,'2026-11-22 16:34:10.910968','7f34a72872ba',NULL);
INSERT INTO "sessions" VALUES('cf57e194ad70','64cacf73026f','','build',NULL,'[]',NULL,NULL,NULL,'2026-11-22 16:34:11.851257','7f34a72872ba',NULL);
INSERT INTO "sessions" VALUES('fc3412d85c1f','64cacf73026f','','build',NULL,'[]',NULL,NULL,NULL,'2026-11-22 16:34:12.144686','7f34a72872ba',NULL);
INSERT INTO "sessions" VALUES('d61c93c89b3e','64cacf73026f','','build',NULL,'[]',NULL,NULL,NULL,'2026-11-22 16:34:12.546681','7f34a72872ba',NULL);
INSERT INTO "sessions" VALUES('cbbce7d8ec81','64cacf73026f','','build',NULL,'[]',NULL,NULL,NULL,'2026-11-22 16:34:13.280862','7f34a72872ba',NULL);
INSERT INTO "sessions" VALUES('cbff3a59a4b1','64cacf73026f','','build',NULL,'[]',NULL,NULL,NULL,'2026-11-22 16:34:13.353594','7f34a72872ba',NULL);
INSERT INTO "sessions" VALUES('7fe268babb7a','64cacf73026f','','build',NULL,'[]',NULL,NULL,NULL,'2026-11-22 16:34:13.609849','7f34a72872ba',NULL);
INSERT INTO "sessions" VALUES('4423c9dfe7bb','64cacf73026f','','build',NULL,'[]',NULL,NULL,NULL,'2026-11-22 16:34:13.844654','7f34a72872ba',NULL);
INSERT INTO "sessions" VALUES('e123cdd93afd','64cacf73026f','','build',NULL,'[]',NULL,NULL,NULL,'2026-11-22 16:34:13.897120','7f34a72872ba',NULL);
INSERT INTO "sessions" VALUES('efa8ebabee3f','64cacf73026f','','build',NULL,'[]',NULL,NULL,NULL,'2026-11-22 16:34:14.120815','7f34a72872ba',NULL);
INSERT INTO "sessions" VALUES('2ed59373142c','64cacf73026f','','build',NULL,'[]',NULL,NULL,NULL,'2026-11-22 16:34:14.225537','7f34a72872ba',NULL);
INSERT INTO "sessions" VALUES('2efe8d5f78ef','64cacf73026f','description of lead','plan',NULL,'[]','ccf05a4488c8',NULL,NULL,'2026-11-22 16:34:15.062306','7f34a72872ba',NULL);
INSERT INTO "sessions" VALUES('d27383463f37','64cacf73026f','description of backend','plan',NULL,'[]','d7ce64a869d2',NULL,NULL,'2026-11-22 16:34:15.237054','7f34a72872ba',NULL);
INSERT INTO "sessions" VALUES('557b5cd9c2ed','64cacf73026f','description of free','plan',NULL,'[]','46ae87ef7b61',NULL,NULL,'2026-11-22 16:34:15.340758','7f34a72872ba',NULL);
INSERT INTO "sessions" VALUES('b3e4ccabb974','64cacf73026f','description of solo','plan',NULL,'[]','7ee84595768b',NULL,NULL,'2026-11-22 16:34:15.485833','7f34a72872ba',NULL);
INSERT INTO "sessions" VALUES('26ad5ec764a4','64cacf73026f','DEFA-0001 in progress','build',NULL,'[]',NULL,NULL,NULL,'2026-11-22 16:34:16.008021','7f34a72872ba','DEFA-0001');
INSERT INTO "sessions" VALUES('0cde6a91b3d0','64cacf73026f','DEFA-0002 with the user','build',NULL,'[]','ce7a8c225f6e',NULL,NULL,'2026-11-22 16:34:16.376650','7f34a72872ba','DEFA-0002');
INSERT INTO "sessions" VALUES('e83f3e95bdff','64cacf73026f','DEFA-0003 failed','build',NULL,'[]','06b1a24e861c',NULL,NULL,'2026-11-22 16:34:16.830724','7f34a72872ba','DEFA-0003');
INSERT INTO "sessions" VALUES('847134b5c82e','64cacf73026f','DEFA-0004 done','build',NULL,'[]','a721e9411ce9',NULL,NULL,'2026-11-22 16:34:17.374851','7f34a72872ba','DEFA-0004');
INSERT INTO "sessions" VALUES('b6b4ac15f1a6','64cacf73026f','DEFA-0005 canceled','build',NULL,'[]',NULL,NULL,NULL,'2026-11-22 16:34:17.863335','7f34a72872ba','DEFA-0005');
INSERT INTO "sessions" VALUES('80d9a5d87b64','64cacf73026f','DEFA-0006 holds solo','build',NULL,'[]',NULL,NULL,NULL,'2026-11-22 16:34:18.240664','7f34a72872ba','DEFA-0006');
INSERT INTO "sessions" VALUES('c95dd4ebc5aa','64cacf73026f','DEFA-0007 waits for solo','build',NULL,'[]',NULL,NULL,NULL,'2026-11-22 16:34:18.415233','7f34a72872ba','DEFA-0007');
INSERT INTO "sessions" VALUES('b637ed30a453','64cacf73026f','','build',NULL,'[]',NULL,NULL,NULL,'2026-11-22 16:34:18.459173','7f34a72872ba',NULL);
INSERT INTO "sessions" VALUES('6837ca70f371','64cacf73026f','','build',NULL,'[]',NULL,NULL,NULL,'2026-11-22 16:34:18.625649','7f34a72872ba',NULL);
INSERT INTO "sessions" VALUES('404f4dde5460','64cacf73026f','','build',NULL,'[]',NULL,NULL,NULL,'2026-11-22 16:34:18.893902','7f34a72872ba',NULL);
INSERT INTO "sessions" VALUES('4f5d3dbcf55e','64cacf73026f','','build',NULL,'[]',NULL,NULL,NULL,'2026-11-22 16:34:19.382485','7f34a72872ba',NULL);
INSERT INTO "sessions" VALUES('064c8e386079','64cacf73026f','','build',NULL,'[]',NULL,NULL,NULL,'2026-11-22 16:34:19.830289','7f34a72872ba',NULL);
INSERT INTO "sessions" VALUES('c7d3b4371253','64cacf73026f','','build',NULL,'[]',NULL,NULL,NULL,'2026-11-22 16:34:21.030390','7f34a72872ba',NULL);
CREATE TABLE steps (
	id INTEGER NOT NULL, 
	order_id VARCHAR(12) NOT NULL, 
	run_id VARCHAR(12) NOT NULL, 
	seq INTEGER NOT NULL, 
	run_seq INTEGER NOT NULL, 
	kind VARCHAR(24) NOT NULL, 
	body JSON NOT NULL, 
	at DATETIME NOT NULL, 
	drone_at DATETIME NOT NULL, 
	late BOOLEAN NOT NULL, 
	organization_id VARCHAR(12) NOT NULL, 
	CONSTRAINT pk_steps PRIMARY KEY (id), 
	CONSTRAINT uq_steps_order_seq UNIQUE (order_id, seq), 
	CONSTRAINT uq_steps_run_seq UNIQUE (run_id, run_seq), 
	CONSTRAINT fk_steps_order_id_orders FOREIGN KEY(order_id) REFERENCES orders (id), 
	CONSTRAINT fk_steps_run_id_runs FOREIGN KEY(run_id) REFERENCES runs (id), 
	CONSTRAINT fk_steps_organization_id_organizations FOREIGN KEY(organization_id) REFERENCES organizations (id)
);
INSERT INTO "steps" VALUES(1,'45af5468ef0f','3561c8386766',1,1,'run_started','{"kind": "run_started", "boot_id": "a3877acdbc40", "sandbox": "none"}','2026-11-22 16:34:07.360956','2026-11-22 16:34:07.305549',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(2,'45af5468ef0f','3561c8386766',2,2,'prepared','{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}','2026-11-22 16:34:07.360956','2026-11-22 16:34:07.309170',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(3,'45af5468ef0f','3561c8386766',3,3,'user','{"kind": "user", "text": "succeeded", "source": "prompt"}','2026-11-22 16:34:07.360956','2026-11-22 16:34:07.311731',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(4,'45af5468ef0f','3561c8386766',4,4,'assistant','{"kind": "assistant", "text": "done", "tool_calls": [], "usage": {"input_tokens": 5, "output_tokens": 0, "thinking_tokens": 0, "cached_tokens": 0, "cost_usd": 0.01}, "model": "", "finish_reason": "", "duration_ms": 0}','2026-11-22 16:34:07.637223','2026-11-22 16:34:07.477244',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(5,'45af5468ef0f','3561c8386766',5,5,'run_ended','{"kind": "run_ended", "status": "success", "exit_status": "stopped", "reason": "the model stopped", "response": "done", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": true, "verification": ""}','2026-11-22 16:34:07.637223','2026-11-22 16:34:07.484493',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(6,'38f9402b0820','87a5c01ba07f',1,1,'run_started','{"kind": "run_started", "boot_id": "a3877acdbc40", "sandbox": "none"}','2026-11-22 16:34:07.797771','2026-11-22 16:34:07.766212',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(7,'38f9402b0820','87a5c01ba07f',2,2,'prepared','{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}','2026-11-22 16:34:07.797771','2026-11-22 16:34:07.767056',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(8,'38f9402b0820','87a5c01ba07f',3,3,'user','{"kind": "user", "text": "succeeded unheard", "source": "prompt"}','2026-11-22 16:34:07.797771','2026-11-22 16:34:07.767701',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(9,'38f9402b0820','87a5c01ba07f',4,4,'run_ended','{"kind": "run_ended", "status": "success", "exit_status": "stopped", "reason": "the model stopped", "response": "done", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": true, "verification": ""}','2026-11-22 16:34:07.989270','2026-11-22 16:34:07.934376',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(10,'18e3b5b93527','385d55bc448e',1,1,'run_started','{"kind": "run_started", "boot_id": "a3877acdbc40", "sandbox": "none"}','2026-11-22 16:34:08.265106','2026-11-22 16:34:08.221325',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(11,'18e3b5b93527','385d55bc448e',2,2,'prepared','{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}','2026-11-22 16:34:08.281587','2026-11-22 16:34:08.221964',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(12,'18e3b5b93527','385d55bc448e',3,3,'user','{"kind": "user", "text": "failed", "source": "prompt"}','2026-11-22 16:34:08.281587','2026-11-22 16:34:08.227334',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(13,'18e3b5b93527','385d55bc448e',4,4,'run_ended','{"kind": "run_ended", "status": "failed", "exit_status": "time_limit", "reason": "The time limit of 1800 s was reached.", "response": "done", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": true, "verification": ""}','2026-11-22 16:34:08.348248','2026-11-22 16:34:08.294274',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(14,'0179d5d5bfc6','2d921b03cdc9',1,1,'run_started','{"kind": "run_started", "boot_id": "a3877acdbc40", "sandbox": "none"}','2026-11-22 16:34:08.530676','2026-11-22 16:34:08.528111',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(15,'0179d5d5bfc6','2d921b03cdc9',2,2,'prepared','{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}','2026-11-22 16:34:08.564190','2026-11-22 16:34:08.529510',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(16,'0179d5d5bfc6','2d921b03cdc9',3,3,'user','{"kind": "user", "text": "failed last attempt", "source": "prompt"}','2026-11-22 16:34:08.564190','2026-11-22 16:34:08.536709',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(17,'0179d5d5bfc6','2d921b03cdc9',4,4,'run_ended','{"kind": "run_ended", "status": "failed", "exit_status": "model_error", "reason": "the provider cannot be reached", "response": "done", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": false, "verification": ""}','2026-11-22 16:34:08.618966','2026-11-22 16:34:08.607229',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(18,'2263b569a566','082d7f66ce53',1,1,'run_started','{"kind": "run_started", "boot_id": "a9e959193cde", "sandbox": "none"}','2026-11-22 16:34:08.791382','2026-11-22 16:34:08.783891',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(19,'2263b569a566','082d7f66ce53',2,2,'prepared','{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}','2026-11-22 16:34:08.791382','2026-11-22 16:34:08.788226',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(20,'2263b569a566','082d7f66ce53',3,3,'user','{"kind": "user", "text": "failed lost", "source": "prompt"}','2026-11-22 16:34:08.832393','2026-11-22 16:34:08.796772',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(21,'1e4f89338e62','39f19ff28184',1,1,'run_started','{"kind": "run_started", "boot_id": "a3877acdbc40", "sandbox": "none"}','2026-11-22 16:34:09.057370','2026-11-22 16:34:09.036663',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(22,'1e4f89338e62','39f19ff28184',2,2,'prepared','{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}','2026-11-22 16:34:09.070376','2026-11-22 16:34:09.037977',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(23,'1e4f89338e62','39f19ff28184',3,3,'user','{"kind": "user", "text": "canceled with receipt", "source": "prompt"}','2026-11-22 16:34:09.070376','2026-11-22 16:34:09.039338',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(24,'1e4f89338e62','39f19ff28184',4,4,'run_ended','{"kind": "run_ended", "status": "preempted", "exit_status": "canceled", "reason": "canceled", "response": "done", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": true, "verification": ""}','2026-11-22 16:34:09.154022','2026-11-22 16:34:09.130934',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(25,'4373695e7c2b','8fc69f9d66e6',1,1,'run_started','{"kind": "run_started", "boot_id": "a3877acdbc40", "sandbox": "none"}','2026-11-22 16:34:09.321737','2026-11-22 16:34:09.303757',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(26,'4373695e7c2b','8fc69f9d66e6',2,2,'prepared','{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}','2026-11-22 16:34:09.389245','2026-11-22 16:34:09.319167',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(27,'4373695e7c2b','8fc69f9d66e6',3,3,'user','{"kind": "user", "text": "canceled after end", "source": "prompt"}','2026-11-22 16:34:09.389245','2026-11-22 16:34:09.325697',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(28,'4373695e7c2b','8fc69f9d66e6',4,4,'run_ended','{"kind": "run_ended", "status": "success", "exit_status": "stopped", "reason": "the model stopped", "response": "done", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": true, "verification": ""}','2026-11-22 16:34:09.439137','2026-11-22 16:34:09.434877',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(29,'8cf0bf8e3309','d4202286b4ee',1,1,'run_started','{"kind": "run_started", "boot_id": "4cb8ca287e45", "sandbox": "none"}','2026-11-22 16:34:09.759431','2026-11-22 16:34:09.722060',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(30,'8cf0bf8e3309','d4202286b4ee',2,2,'prepared','{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}','2026-11-22 16:34:09.814479','2026-11-22 16:34:09.722580',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(31,'8cf0bf8e3309','d4202286b4ee',3,3,'user','{"kind": "user", "text": "canceled with loss", "source": "prompt"}','2026-11-22 16:34:09.814479','2026-11-22 16:34:09.725427',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(32,'a4ca462dbecb','5e7f98221be2',1,1,'run_started','{"kind": "run_started", "boot_id": "a3877acdbc40", "sandbox": "none"}','2026-11-22 16:34:10.083549','2026-11-22 16:34:10.047739',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(33,'a4ca462dbecb','5e7f98221be2',2,2,'prepared','{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}','2026-11-22 16:34:10.083549','2026-11-22 16:34:10.048293',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(34,'a4ca462dbecb','5e7f98221be2',3,3,'user','{"kind": "user", "text": "canceling", "source": "prompt"}','2026-11-22 16:34:10.123464','2026-11-22 16:34:10.049605',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(35,'b9136af5f792','a541eb083acb',1,1,'run_started','{"kind": "run_started", "boot_id": "a3877acdbc40", "sandbox": "none"}','2026-11-22 16:34:10.316962','2026-11-22 16:34:10.243605',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(36,'b9136af5f792','a541eb083acb',2,2,'prepared','{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}','2026-11-22 16:34:10.439138','2026-11-22 16:34:10.244132',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(37,'b9136af5f792','a541eb083acb',3,3,'user','{"kind": "user", "text": "canceling unnamed", "source": "prompt"}','2026-11-22 16:34:10.439138','2026-11-22 16:34:10.245253',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(38,'e03e3c9c650a','29bffb9ef521',1,1,'run_started','{"kind": "run_started", "boot_id": "a3877acdbc40", "sandbox": "none"}','2026-11-22 16:34:10.784695','2026-11-22 16:34:10.777407',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(39,'e03e3c9c650a','29bffb9ef521',2,2,'prepared','{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}','2026-11-22 16:34:11.014982','2026-11-22 16:34:10.778935',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(40,'e03e3c9c650a','29bffb9ef521',3,3,'user','{"kind": "user", "text": "running", "source": "prompt"}','2026-11-22 16:34:11.014982','2026-11-22 16:34:10.781871',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(41,'b2d00d9b68e4','a51718cb0016',1,1,'run_started','{"kind": "run_started", "boot_id": "809079c14d95", "sandbox": "none"}','2026-11-22 16:34:11.689480','2026-11-22 16:34:11.617182',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(42,'b2d00d9b68e4','a51718cb0016',2,2,'prepared','{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}','2026-11-22 16:34:11.689480','2026-11-22 16:34:11.617896',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(43,'b2d00d9b68e4','a51718cb0016',3,3,'user','{"kind": "user", "text": "running free choice", "source": "prompt"}','2026-11-22 16:34:11.815132','2026-11-22 16:34:11.618659',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(44,'b0826109453e','b49d983b1986',1,1,'run_started','{"kind": "run_started", "boot_id": "a3877acdbc40", "sandbox": "none"}','2026-11-22 16:34:11.937536','2026-11-22 16:34:11.932011',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(45,'b0826109453e','b49d983b1986',2,2,'prepared','{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}','2026-11-22 16:34:11.956245','2026-11-22 16:34:11.932547',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(46,'b0826109453e','b49d983b1986',3,3,'user','{"kind": "user", "text": "awaiting", "source": "prompt"}','2026-11-22 16:34:11.956245','2026-11-22 16:34:11.933636',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(47,'b0826109453e','b49d983b1986',4,4,'approval','{"kind": "approval", "call_id": "c1", "tool": "shell", "why": "It changes files: rm x.", "until": null}','2026-11-22 16:34:12.023505','2026-11-22 16:34:12.019868',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(48,'1e31eb84dc5e','e2549a89c239',1,1,'run_started','{"kind": "run_started", "boot_id": "a3877acdbc40", "sandbox": "none"}','2026-11-22 16:34:12.263985','2026-11-22 16:34:12.248375',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(49,'1e31eb84dc5e','e2549a89c239',2,2,'prepared','{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}','2026-11-22 16:34:12.263985','2026-11-22 16:34:12.248922',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(50,'1e31eb84dc5e','e2549a89c239',3,3,'user','{"kind": "user", "text": "answer on its way", "source": "prompt"}','2026-11-22 16:34:12.263985','2026-11-22 16:34:12.249431',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(51,'1e31eb84dc5e','e2549a89c239',4,4,'approval','{"kind": "approval", "call_id": "c1", "tool": "shell", "why": "It changes files.", "until": null}','2026-11-22 16:34:12.381760','2026-11-22 16:34:12.331467',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(52,'d637eaa25f89','9372cd099a1a',1,1,'run_started','{"kind": "run_started", "boot_id": "a3877acdbc40", "sandbox": "none"}','2026-11-22 16:34:12.784737','2026-11-22 16:34:12.645542',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(53,'d637eaa25f89','9372cd099a1a',2,2,'prepared','{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}','2026-11-22 16:34:12.863749','2026-11-22 16:34:12.647487',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(54,'d637eaa25f89','9372cd099a1a',3,3,'user','{"kind": "user", "text": "answered", "source": "prompt"}','2026-11-22 16:34:12.863749','2026-11-22 16:34:12.649449',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(55,'d637eaa25f89','9372cd099a1a',4,4,'approval','{"kind": "approval", "call_id": "c1", "tool": "shell", "why": "It changes files.", "until": null}','2026-11-22 16:34:12.963566','2026-11-22 16:34:12.805463',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(56,'d637eaa25f89','9372cd099a1a',5,5,'decision','{"kind": "decision", "call_id": "c1", "approved": true, "by": "person", "comment": ""}','2026-11-22 16:34:13.003939','2026-11-22 16:34:12.996998',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(57,'e1ddc6fcc7b7','c89233d569a5',1,1,'run_started','{"kind": "run_started", "boot_id": "809079c14d95", "sandbox": "none"}','2026-11-22 16:34:13.678275','2026-11-22 16:34:13.666291',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(58,'e1ddc6fcc7b7','c89233d569a5',2,2,'run_ended','{"kind": "run_ended", "status": "failed", "exit_status": "refused", "reason": "the repository cannot be reached", "response": "done", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": false, "verification": ""}','2026-11-22 16:34:13.678275','2026-11-22 16:34:13.669743',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(59,'058bffa666cf','cb977fd4066c',1,1,'run_started','{"kind": "run_started", "boot_id": "9edd39875e3e", "sandbox": "none"}','2026-11-22 16:34:14.029960','2026-11-22 16:34:13.994009',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(60,'058bffa666cf','cb977fd4066c',2,2,'prepared','{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}','2026-11-22 16:34:14.043218','2026-11-22 16:34:13.996362',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(61,'058bffa666cf','cb977fd4066c',3,3,'user','{"kind": "user", "text": "mila runs", "source": "prompt"}','2026-11-22 16:34:14.043218','2026-11-22 16:34:13.997024',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(62,'6bf2c8cb2975','ef36db080a10',1,1,'run_started','{"kind": "run_started", "boot_id": "809079c14d95", "sandbox": "none"}','2026-11-22 16:34:15.642767','2026-11-22 16:34:15.593400',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(63,'6bf2c8cb2975','ef36db080a10',2,2,'run_ended','{"kind": "run_ended", "status": "success", "exit_status": "stopped", "reason": "the model stopped", "response": "It works.", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": true, "verification": ""}','2026-11-22 16:34:15.642767','2026-11-22 16:34:15.595229',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(64,'eaadf09d8f6c','00f3a8b2ec10',1,1,'run_started','{"kind": "run_started", "boot_id": "a3877acdbc40", "sandbox": "none"}','2026-11-22 16:34:15.789171','2026-11-22 16:34:15.606411',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(65,'eaadf09d8f6c','00f3a8b2ec10',2,2,'run_ended','{"kind": "run_ended", "status": "success", "exit_status": "stopped", "reason": "the model stopped", "response": "It works.", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": true, "verification": ""}','2026-11-22 16:34:15.789171','2026-11-22 16:34:15.608038',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(66,'78ad17083435','154f31e58147',1,1,'run_started','{"kind": "run_started", "boot_id": "a3877acdbc40", "sandbox": "none"}','2026-11-22 16:34:15.789171','2026-11-22 16:34:15.682109',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(67,'78ad17083435','154f31e58147',2,2,'run_ended','{"kind": "run_ended", "status": "success", "exit_status": "stopped", "reason": "the model stopped", "response": "It works.", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": true, "verification": ""}','2026-11-22 16:34:15.789171','2026-11-22 16:34:15.684660',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(68,'2d74a4d261e2','a570fd9198cc',1,1,'run_started','{"kind": "run_started", "boot_id": "a3877acdbc40", "sandbox": "none"}','2026-11-22 16:34:15.907601','2026-11-22 16:34:15.850861',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(69,'2d74a4d261e2','a570fd9198cc',2,2,'run_ended','{"kind": "run_ended", "status": "success", "exit_status": "stopped", "reason": "the model stopped", "response": "It works.", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": true, "verification": ""}','2026-11-22 16:34:15.907601','2026-11-22 16:34:15.852404',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(70,'2d74a4d261e2','a570fd9198cc',3,3,'run_started','{"kind": "run_started", "boot_id": "a3877acdbc40", "sandbox": "none"}','2026-11-22 16:34:15.944538','2026-11-22 16:34:15.932574',1,'7f34a72872ba');
INSERT INTO "steps" VALUES(71,'2d74a4d261e2','a570fd9198cc',4,4,'run_ended','{"kind": "run_ended", "status": "success", "exit_status": "stopped", "reason": "the model stopped", "response": "It works.", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": true, "verification": ""}','2026-11-22 16:34:15.944538','2026-11-22 16:34:15.936254',1,'7f34a72872ba');
INSERT INTO "steps" VALUES(72,'f942973c1ffc','6b49fb129e7c',1,1,'run_started','{"kind": "run_started", "boot_id": "a3877acdbc40", "sandbox": "none"}','2026-11-22 16:34:16.287475','2026-11-22 16:34:16.165085',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(73,'f942973c1ffc','6b49fb129e7c',2,2,'prepared','{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}','2026-11-22 16:34:16.287475','2026-11-22 16:34:16.165699',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(74,'f942973c1ffc','6b49fb129e7c',3,3,'user','{"kind": "user", "text": "# Task DEFA-0001: in progress\n\nOrganization: default\nAssigned to: lead (you)\nOpened: 2026-11-22 16:34:16 UTC by kim\n\n## Description\n\n  in progress\n\n## Thread\n\n[Nobody has written a comment yet.]\n\n## Your turn\n\nIt is your turn on this task, lead. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.\nWhen your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.\n\nBudget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.", "source": "prompt"}','2026-11-22 16:34:16.287475','2026-11-22 16:34:16.166263',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(75,'459fac5aa244','7f17a8da655d',1,1,'run_started','{"kind": "run_started", "boot_id": "a3877acdbc40", "sandbox": "none"}','2026-11-22 16:34:16.555407','2026-11-22 16:34:16.443914',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(76,'459fac5aa244','7f17a8da655d',2,2,'prepared','{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}','2026-11-22 16:34:16.616348','2026-11-22 16:34:16.445982',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(77,'459fac5aa244','7f17a8da655d',3,3,'user','{"kind": "user", "text": "# Task DEFA-0002: with the user\n\nOrganization: default\nAssigned to: free (you)\nOpened: 2026-11-22 16:34:16 UTC by kim\n\n## Description\n\n  with the user\n\n## Thread\n\n[Nobody has written a comment yet.]\n\n## Your turn\n\nIt is your turn on this task, free. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.\nWhen your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.\n\nBudget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.", "source": "prompt"}','2026-11-22 16:34:16.616348','2026-11-22 16:34:16.446659',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(78,'459fac5aa244','7f17a8da655d',4,4,'comment','{"kind": "comment", "text": "I have a question.", "to_task": true}','2026-11-22 16:34:16.665671','2026-11-22 16:34:16.647238',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(79,'459fac5aa244','7f17a8da655d',5,5,'run_ended','{"kind": "run_ended", "status": "success", "exit_status": "stopped", "reason": "the model stopped", "response": "done", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": true, "verification": ""}','2026-11-22 16:34:16.665671','2026-11-22 16:34:16.660669',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(80,'8e504c8868d7','203a19ceb2ad',1,1,'run_started','{"kind": "run_started", "boot_id": "a3877acdbc40", "sandbox": "none"}','2026-11-22 16:34:17.037664','2026-11-22 16:34:17.029253',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(81,'8e504c8868d7','203a19ceb2ad',2,2,'prepared','{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}','2026-11-22 16:34:17.037664','2026-11-22 16:34:17.029812',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(82,'8e504c8868d7','203a19ceb2ad',3,3,'user','{"kind": "user", "text": "# Task DEFA-0003: failed\n\nOrganization: default\nAssigned to: free (you)\nOpened: 2026-11-22 16:34:16 UTC by kim\n\n## Description\n\n  failed\n\n## Thread\n\n[Nobody has written a comment yet.]\n\n## Your turn\n\nIt is your turn on this task, free. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.\nWhen your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.\n\nBudget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.", "source": "prompt"}','2026-11-22 16:34:17.148618','2026-11-22 16:34:17.031030',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(83,'8e504c8868d7','203a19ceb2ad',4,4,'run_ended','{"kind": "run_ended", "status": "failed", "exit_status": "time_limit", "reason": "The time limit was reached.", "response": "done", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": true, "verification": ""}','2026-11-22 16:34:17.212437','2026-11-22 16:34:17.157091',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(84,'4d27a32df710','de8625bf5866',1,1,'run_started','{"kind": "run_started", "boot_id": "a3877acdbc40", "sandbox": "none"}','2026-11-22 16:34:17.547691','2026-11-22 16:34:17.510000',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(85,'4d27a32df710','de8625bf5866',2,2,'prepared','{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}','2026-11-22 16:34:17.547691','2026-11-22 16:34:17.510984',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(86,'4d27a32df710','de8625bf5866',3,3,'user','{"kind": "user", "text": "# Task DEFA-0004: done\n\nOrganization: default\nAssigned to: free (you)\nOpened: 2026-11-22 16:34:17 UTC by kim\n\n## Description\n\n  done\n\n## Thread\n\n[Nobody has written a comment yet.]\n\n## Your turn\n\nIt is your turn on this task, free. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.\nWhen your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.\n\nBudget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.", "source": "prompt"}','2026-11-22 16:34:17.667547','2026-11-22 16:34:17.512291',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(87,'4d27a32df710','de8625bf5866',4,4,'comment','{"kind": "comment", "text": "Finished.", "to_task": true}','2026-11-22 16:34:17.680938','2026-11-22 16:34:17.592637',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(88,'4d27a32df710','de8625bf5866',5,5,'run_ended','{"kind": "run_ended", "status": "success", "exit_status": "stopped", "reason": "the model stopped", "response": "done", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": true, "verification": ""}','2026-11-22 16:34:17.680938','2026-11-22 16:34:17.593385',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(89,'0eadbba5f17a','a26a6a7702b6',1,1,'run_started','{"kind": "run_started", "boot_id": "a3877acdbc40", "sandbox": "none"}','2026-11-22 16:34:17.970619','2026-11-22 16:34:17.956626',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(90,'0eadbba5f17a','a26a6a7702b6',2,2,'prepared','{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}','2026-11-22 16:34:18.018625','2026-11-22 16:34:17.957680',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(91,'0eadbba5f17a','a26a6a7702b6',3,3,'user','{"kind": "user", "text": "# Task DEFA-0005: canceled\n\nOrganization: default\nAssigned to: free (you)\nOpened: 2026-11-22 16:34:17 UTC by kim\n\n## Description\n\n  canceled\n\n## Thread\n\n[Nobody has written a comment yet.]\n\n## Your turn\n\nIt is your turn on this task, free. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.\nWhen your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.\n\nBudget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.", "source": "prompt"}','2026-11-22 16:34:18.018625','2026-11-22 16:34:17.958242',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(92,'c323ead6b023','9e13ff8fa483',1,1,'run_started','{"kind": "run_started", "boot_id": "a3877acdbc40", "sandbox": "none"}','2026-11-22 16:34:18.339501','2026-11-22 16:34:18.314786',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(93,'c323ead6b023','9e13ff8fa483',2,2,'prepared','{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}','2026-11-22 16:34:18.339501','2026-11-22 16:34:18.315323',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(94,'c323ead6b023','9e13ff8fa483',3,3,'user','{"kind": "user", "text": "# Task DEFA-0006: holds solo\n\nOrganization: default\nAssigned to: solo (you)\nOpened: 2026-11-22 16:34:18 UTC by kim\n\n## Description\n\n  holds solo\n\n## Thread\n\n[Nobody has written a comment yet.]\n\n## Your turn\n\nIt is your turn on this task, solo. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.\nWhen your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.\n\nBudget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.", "source": "prompt"}','2026-11-22 16:34:18.339501','2026-11-22 16:34:18.315912',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(95,'b50ac323a892','b38c786667c0',1,1,'run_started','{"kind": "run_started", "boot_id": "a3877acdbc40", "sandbox": "none"}','2026-11-22 16:34:18.544221','2026-11-22 16:34:18.520594',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(96,'b50ac323a892','b38c786667c0',2,2,'prepared','{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}','2026-11-22 16:34:18.581635','2026-11-22 16:34:18.521939',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(97,'b50ac323a892','b38c786667c0',3,3,'user','{"kind": "user", "text": "given back", "source": "prompt"}','2026-11-22 16:34:18.581635','2026-11-22 16:34:18.524744',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(98,'8b7c9dc3f83d','d71bfad03696',1,1,'run_started','{"kind": "run_started", "boot_id": "a3877acdbc40", "sandbox": "none"}','2026-11-22 16:34:18.693768','2026-11-22 16:34:18.664640',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(99,'8b7c9dc3f83d','d71bfad03696',2,2,'prepared','{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}','2026-11-22 16:34:18.693768','2026-11-22 16:34:18.667478',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(100,'8b7c9dc3f83d','d71bfad03696',3,3,'user','{"kind": "user", "text": "queued again", "source": "prompt"}','2026-11-22 16:34:19.294731','2026-11-22 16:34:18.675635',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(101,'9d0817cb98bc','d58d486cb562',1,1,'run_started','{"kind": "run_started", "boot_id": "a3877acdbc40", "sandbox": "none"}','2026-11-22 16:34:19.307415','2026-11-22 16:34:19.069305',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(102,'9d0817cb98bc','d58d486cb562',2,2,'prepared','{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}','2026-11-22 16:34:19.307415','2026-11-22 16:34:19.069890',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(103,'9d0817cb98bc','d58d486cb562',3,3,'user','{"kind": "user", "text": "queued from checkpoint", "source": "prompt"}','2026-11-22 16:34:19.307415','2026-11-22 16:34:19.070494',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(104,'93cd8fbec08a','fab3f20a300f',1,1,'run_started','{"kind": "run_started", "boot_id": "a3877acdbc40", "sandbox": "none"}','2026-11-22 16:34:19.505908','2026-11-22 16:34:19.426626',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(105,'93cd8fbec08a','fab3f20a300f',2,2,'prepared','{"kind": "prepared", "base_commit": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "default_branch": null}','2026-11-22 16:34:19.505908','2026-11-22 16:34:19.432382',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(106,'93cd8fbec08a','fab3f20a300f',3,3,'user','{"kind": "user", "text": "withdrawn", "source": "prompt"}','2026-11-22 16:34:19.505908','2026-11-22 16:34:19.433123',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(107,'9d0817cb98bc','d58d486cb562',4,4,'assistant','{"kind": "assistant", "text": "I do one.", "tool_calls": [{"id": "call one", "name": "shell", "arguments": "{\"command\": \"ls\"}"}], "usage": {"input_tokens": 10, "output_tokens": 0, "thinking_tokens": 0, "cached_tokens": 0, "cost_usd": 0.5}, "model": "", "finish_reason": "", "duration_ms": 0}','2026-11-22 16:34:19.735818','2026-11-22 16:34:19.732237',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(108,'9d0817cb98bc','d58d486cb562',5,5,'tool_result','{"kind": "tool_result", "call_id": "call one", "output": "one is done", "return_code": 0, "is_error": false, "duration_ms": 0, "output_bytes": 0, "log_sha256": null}','2026-11-22 16:34:19.735818','2026-11-22 16:34:19.733645',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(109,'9d0817cb98bc','d58d486cb562',6,6,'checkpoint','{"kind": "checkpoint", "commit": "7692c3ad3540bb803c020b3aee66cd8887123234", "head": "", "changed": true, "bundle_sha256": "724c14943ee22294c7430066cd2724f5d0c08b35d529a7225c7cc35596abe992", "bundle_bytes": 0, "left_out": [], "spent": {"iterations": 1, "input_tokens": 0, "output_tokens": 0, "cost_usd": 0.5, "seconds": 0.0}}','2026-11-22 16:34:19.769549','2026-11-22 16:34:19.736424',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(110,'b50ac323a892','b38c786667c0',4,4,'run_ended','{"kind": "run_ended", "status": "preempted", "exit_status": "canceled", "reason": "the drone stops", "response": "done", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": true, "order_at_fault": true, "verification": ""}','2026-11-22 16:34:20.642257','2026-11-22 16:34:20.629911',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(111,'8b7c9dc3f83d','d71bfad03696',4,4,'run_ended','{"kind": "run_ended", "status": "failed", "exit_status": "model_error", "reason": "the provider cannot be reached", "response": "done", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": false, "verification": ""}','2026-11-22 16:34:20.787705','2026-11-22 16:34:20.719165',0,'7f34a72872ba');
INSERT INTO "steps" VALUES(112,'9d0817cb98bc','d58d486cb562',7,7,'run_ended','{"kind": "run_ended", "status": "failed", "exit_status": "model_error", "reason": "the provider cannot be reached", "response": "done", "stats": {"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}, "receipt": null, "give_back": false, "order_at_fault": false, "verification": ""}','2026-11-22 16:34:20.825248','2026-11-22 16:34:20.820930',0,'7f34a72872ba');
CREATE TABLE tasks (
	id VARCHAR(32) NOT NULL, 
	number INTEGER NOT NULL, 
	title TEXT NOT NULL, 
	description TEXT NOT NULL, 
	status VARCHAR(16) NOT NULL, 
	assignee_id VARCHAR(12), 
	project_id VARCHAR(12) NOT NULL, 
	session_id VARCHAR(12) NOT NULL, 
	mode VARCHAR(16) NOT NULL, 
	priority INTEGER NOT NULL, 
	limits JSON NOT NULL, 
	order_id VARCHAR(12), 
	hand_offs INTEGER NOT NULL, 
	user VARCHAR(128) NOT NULL, 
	queued_at DATETIME NOT NULL, 
	created_at DATETIME NOT NULL, 
	updated_at DATETIME NOT NULL, 
	ended_at DATETIME, 
	organization_id VARCHAR(12) NOT NULL, 
	CONSTRAINT pk_tasks PRIMARY KEY (id), 
	CONSTRAINT fk_tasks_assignee_id_agents FOREIGN KEY(assignee_id) REFERENCES agents (id), 
	CONSTRAINT fk_tasks_project_id_projects FOREIGN KEY(project_id) REFERENCES projects (id), 
	CONSTRAINT fk_tasks_session_id_sessions FOREIGN KEY(session_id) REFERENCES sessions (id), 
	CONSTRAINT fk_tasks_organization_id_organizations FOREIGN KEY(organization_id) REFERENCES organizations (id)
);
INSERT INTO "tasks" VALUES('DEFA-0001',1,'in progress','in progress','in_progress','3374c3a27a3e','64cacf73026f','26ad5ec764a4','build',0,'{}','f942973c1ffc',0,'kim','2026-11-22 16:34:16.008165','2026-11-22 16:34:16.008165','2026-11-22 16:34:16.056852',NULL,'7f34a72872ba');
INSERT INTO "tasks" VALUES('DEFA-0002',2,'with the user','with the user','open',NULL,'64cacf73026f','0cde6a91b3d0','build',0,'{}','459fac5aa244',0,'kim','2026-11-22 16:34:16.376706','2026-11-22 16:34:16.376706','2026-11-22 16:34:16.706001',NULL,'7f34a72872ba');
INSERT INTO "tasks" VALUES('DEFA-0003',3,'failed','failed','failed',NULL,'64cacf73026f','e83f3e95bdff','build',0,'{}','8e504c8868d7',0,'kim','2026-11-22 16:34:16.830791','2026-11-22 16:34:16.830791','2026-11-22 16:34:17.230212',NULL,'7f34a72872ba');
INSERT INTO "tasks" VALUES('DEFA-0004',4,'done','done','done',NULL,'64cacf73026f','847134b5c82e','build',0,'{}','4d27a32df710',0,'kim','2026-11-22 16:34:17.375553','2026-11-22 16:34:17.375553','2026-11-22 16:34:17.825071','2026-11-22 16:34:17.825071','7f34a72872ba');
INSERT INTO "tasks" VALUES('DEFA-0005',5,'canceled','canceled','canceled',NULL,'64cacf73026f','b6b4ac15f1a6','build',0,'{}','0eadbba5f17a',0,'kim','2026-11-22 16:34:17.863393','2026-11-22 16:34:17.863393','2026-11-22 16:34:18.037437','2026-11-22 16:34:18.037437','7f34a72872ba');
INSERT INTO "tasks" VALUES('DEFA-0006',6,'holds solo','holds solo','in_progress','cb433639e550','64cacf73026f','80d9a5d87b64','build',0,'{}','c323ead6b023',0,'kim','2026-11-22 16:34:18.240731','2026-11-22 16:34:18.240731','2026-11-22 16:34:18.258588',NULL,'7f34a72872ba');
INSERT INTO "tasks" VALUES('DEFA-0007',7,'waits for solo','waits for solo','open','cb433639e550','64cacf73026f','c95dd4ebc5aa','build',0,'{}',NULL,0,'kim','2026-11-22 16:34:18.415359','2026-11-22 16:34:18.415359','2026-11-22 16:34:18.415359',NULL,'7f34a72872ba');
CREATE TABLE trigger_deliveries (
	trigger_id VARCHAR(12) NOT NULL, 
	delivery VARCHAR(128) NOT NULL, 
	event VARCHAR(128) NOT NULL, 
	task_id VARCHAR(32), 
	outcome TEXT NOT NULL, 
	at DATETIME NOT NULL, 
	organization_id VARCHAR(12) NOT NULL, 
	CONSTRAINT pk_trigger_deliveries PRIMARY KEY (trigger_id, delivery), 
	CONSTRAINT fk_trigger_deliveries_trigger_id_triggers FOREIGN KEY(trigger_id) REFERENCES triggers (id), 
	CONSTRAINT fk_trigger_deliveries_organization_id_organizations FOREIGN KEY(organization_id) REFERENCES organizations (id)
);
CREATE TABLE triggers (
	id VARCHAR(12) NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	sealed_secret TEXT NOT NULL, 
	events JSON NOT NULL, 
	task JSON NOT NULL, 
	enabled BOOLEAN NOT NULL, 
	last_at DATETIME, 
	last_task_id VARCHAR(32), 
	last_error TEXT NOT NULL, 
	user VARCHAR(128) NOT NULL, 
	created_at DATETIME NOT NULL, 
	removed_at DATETIME, 
	organization_id VARCHAR(12) NOT NULL, 
	CONSTRAINT pk_triggers PRIMARY KEY (id), 
	CONSTRAINT fk_triggers_organization_id_organizations FOREIGN KEY(organization_id) REFERENCES organizations (id)
);
CREATE TABLE turns (
	id VARCHAR(12) NOT NULL, 
	session_id VARCHAR(12) NOT NULL, 
	order_id VARCHAR(12) NOT NULL, 
	user VARCHAR(128) NOT NULL, 
	prompt TEXT NOT NULL, 
	provider VARCHAR(64) NOT NULL, 
	model VARCHAR(255) NOT NULL, 
	mode VARCHAR(16) NOT NULL, 
	status VARCHAR(16) NOT NULL, 
	response TEXT, 
	stats JSON NOT NULL, 
	created_at DATETIME NOT NULL, 
	ended_at DATETIME, 
	organization_id VARCHAR(12) NOT NULL, 
	CONSTRAINT pk_turns PRIMARY KEY (id), 
	CONSTRAINT fk_turns_session_id_sessions FOREIGN KEY(session_id) REFERENCES sessions (id), 
	CONSTRAINT uq_turns_order_id UNIQUE (order_id), 
	CONSTRAINT fk_turns_order_id_orders FOREIGN KEY(order_id) REFERENCES orders (id), 
	CONSTRAINT fk_turns_organization_id_organizations FOREIGN KEY(organization_id) REFERENCES organizations (id)
);
INSERT INTO "turns" VALUES('2c45cecab993','2128ead397f1','45af5468ef0f','system','succeeded','scripted','openai/scripted','build','finished','done','{"tool_calls": 0, "input_tokens": 5, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.01, "duration_ms": 0}','2026-11-22 16:34:07.117980','2026-11-22 16:34:07.659679','7f34a72872ba');
INSERT INTO "turns" VALUES('3a09d1d025cf','7ebb04d85005','38f9402b0820','system','succeeded unheard','scripted','openai/scripted','build','finished','done','{"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}','2026-11-22 16:34:07.733727','2026-11-22 16:34:08.001622','7f34a72872ba');
INSERT INTO "turns" VALUES('29f28245fd2f','237aa3fe2b75','18e3b5b93527','system','failed','scripted','openai/scripted','build','error','done','{"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}','2026-11-22 16:34:08.133326','2026-11-22 16:34:08.352804','7f34a72872ba');
INSERT INTO "turns" VALUES('0b138b8b5bbc','f8ea6dbb4134','0179d5d5bfc6','system','failed last attempt','scripted','openai/scripted','build','error','done','{"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}','2026-11-22 16:34:08.502332','2026-11-22 16:34:08.623795','7f34a72872ba');
INSERT INTO "turns" VALUES('705576c5312b','b3681ccf96c3','2263b569a566','system','failed lost','scripted','openai/scripted','build','error',NULL,'{"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}','2026-11-22 16:34:08.695329','2026-11-22 16:34:08.887289','7f34a72872ba');
INSERT INTO "turns" VALUES('e42bb227a465','475a6c9423af','2ed3624230b0','system','canceled before','scripted','openai/scripted','build','aborted',NULL,'{"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}','2026-11-22 16:34:08.945750','2026-11-22 16:34:08.979494','7f34a72872ba');
INSERT INTO "turns" VALUES('a82b629f270a','50cfbd60a10d','1e4f89338e62','system','canceled with receipt','scripted','openai/scripted','build','aborted','done','{"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}','2026-11-22 16:34:08.995888','2026-11-22 16:34:09.158790','7f34a72872ba');
INSERT INTO "turns" VALUES('36242b74d746','70ddeef275f2','4373695e7c2b','system','canceled after end','scripted','openai/scripted','build','aborted','done','{"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}','2026-11-22 16:34:09.239770','2026-11-22 16:34:09.449450','7f34a72872ba');
INSERT INTO "turns" VALUES('e90cc150e162','2bce38a8b900','8cf0bf8e3309','system','canceled with loss','scripted','openai/scripted','build','aborted',NULL,'{"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}','2026-11-22 16:34:09.566941','2026-11-22 16:34:09.950520','7f34a72872ba');
INSERT INTO "turns" VALUES('229e9ecb6456','1c5e7032d778','a4ca462dbecb','system','canceling','scripted','openai/scripted','build','processing',NULL,'{}','2026-11-22 16:34:09.991158',NULL,'7f34a72872ba');
INSERT INTO "turns" VALUES('6f76e1147216','109a3645c796','b9136af5f792','system','canceling unnamed','scripted','openai/scripted','build','processing',NULL,'{}','2026-11-22 16:34:10.203943',NULL,'7f34a72872ba');
INSERT INTO "turns" VALUES('d3f9d2c37c2e','5a502b90868f','e03e3c9c650a','system','running','scripted','openai/scripted','build','processing',NULL,'{}','2026-11-22 16:34:10.626658',NULL,'7f34a72872ba');
INSERT INTO "turns" VALUES('d4f28a9405de','262033569866','b2d00d9b68e4','system','running free choice','scripted','openai/scripted','build','processing',NULL,'{}','2026-11-22 16:34:10.911129',NULL,'7f34a72872ba');
INSERT INTO "turns" VALUES('f6a6b6a4f657','cf57e194ad70','b0826109453e','system','awaiting','scripted','openai/scripted','build','processing',NULL,'{}','2026-11-22 16:34:11.851389',NULL,'7f34a72872ba');
INSERT INTO "turns" VALUES('dacdd20f2d9d','fc3412d85c1f','1e31eb84dc5e','system','answer on its way','scripted','openai/scripted','build','processing',NULL,'{}','2026-11-22 16:34:12.144812',NULL,'7f34a72872ba');
INSERT INTO "turns" VALUES('06f1d2158ac0','d61c93c89b3e','d637eaa25f89','system','answered','scripted','openai/scripted','build','processing',NULL,'{}','2026-11-22 16:34:12.546802',NULL,'7f34a72872ba');
INSERT INTO "turns" VALUES('2caeaba81ecc','cbbce7d8ec81','5cca8112991e','system','no drone fits','scripted','openai/scripted','build','processing',NULL,'{}','2026-11-22 16:34:13.280988',NULL,'7f34a72872ba');
INSERT INTO "turns" VALUES('5017e570a8f8','262033569866','7f471c2ae5d6','system','session waits','scripted','openai/scripted','build','processing',NULL,'{}','2026-11-22 16:34:13.294276',NULL,'7f34a72872ba');
INSERT INTO "turns" VALUES('9cc8ce0a5292','cbff3a59a4b1','bbe5f7531ce3','system','named removed','scripted','openai/scripted','build','processing',NULL,'{}','2026-11-22 16:34:13.353753',NULL,'7f34a72872ba');
INSERT INTO "turns" VALUES('769e26fb31a9','7fe268babb7a','e1ddc6fcc7b7','system','pausing','scripted','openai/scripted','build','processing',NULL,'{}','2026-11-22 16:34:13.609961',NULL,'7f34a72872ba');
INSERT INTO "turns" VALUES('109274a227f3','4423c9dfe7bb','fc1a6a39bc47','system','assigned never started','scripted','openai/scripted','build','processing',NULL,'{}','2026-11-22 16:34:13.844775',NULL,'7f34a72872ba');
INSERT INTO "turns" VALUES('74821feb1d5b','e123cdd93afd','058bffa666cf','system','mila runs','scripted','openai/scripted','build','processing',NULL,'{}','2026-11-22 16:34:13.897209',NULL,'7f34a72872ba');
INSERT INTO "turns" VALUES('10dfd4c73245','efa8ebabee3f','8b3297207dc2','system','assigned busy','scripted','openai/scripted','build','processing',NULL,'{}','2026-11-22 16:34:14.120937',NULL,'7f34a72872ba');
INSERT INTO "turns" VALUES('d1ace3c61360','2ed59373142c','a3e74f5c8c27','system','taken back','scripted','openai/scripted','build','processing',NULL,'{}','2026-11-22 16:34:14.225697',NULL,'7f34a72872ba');
INSERT INTO "turns" VALUES('f2aafd6ec0c1','2efe8d5f78ef','6bf2c8cb2975','kim','Describe agent lead from its instructions.','scripted','openai/scripted','plan','finished','It works.','{"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}','2026-11-22 16:34:15.063282','2026-11-22 16:34:15.680671','7f34a72872ba');
INSERT INTO "turns" VALUES('ad6f2bbc2083','d27383463f37','eaadf09d8f6c','kim','Describe agent backend from its instructions.','scripted','openai/scripted','plan','finished','It works.','{"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}','2026-11-22 16:34:15.239627','2026-11-22 16:34:15.816317','7f34a72872ba');
INSERT INTO "turns" VALUES('64c5cf9e4171','557b5cd9c2ed','78ad17083435','kim','Describe agent free from its instructions.','scripted','openai/scripted','plan','finished','It works.','{"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}','2026-11-22 16:34:15.341716','2026-11-22 16:34:15.857659','7f34a72872ba');
INSERT INTO "turns" VALUES('9b592e182d22','b3e4ccabb974','2d74a4d261e2','kim','Describe agent solo from its instructions.','scripted','openai/scripted','plan','finished','It works.','{"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}','2026-11-22 16:34:15.486562','2026-11-22 16:34:15.925988','7f34a72872ba');
INSERT INTO "turns" VALUES('faff602e13b7','26ad5ec764a4','f942973c1ffc','kim','# Task DEFA-0001: in progress

Organization: default
Assigned to: lead (you)
Opened: 2026-11-22 16:34:16 UTC by kim

## Description

  in progress

## Thread

[Nobody has written a comment yet.]

## Your turn

It is your turn on this task, lead. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.
When your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.

Budget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.','scripted','openai/scripted','build','processing',NULL,'{}','2026-11-22 16:34:16.028647',NULL,'7f34a72872ba');
INSERT INTO "turns" VALUES('67c0100c46ad','0cde6a91b3d0','459fac5aa244','kim','# Task DEFA-0002: with the user

Organization: default
Assigned to: free (you)
Opened: 2026-11-22 16:34:16 UTC by kim

## Description

  with the user

## Thread

[Nobody has written a comment yet.]

## Your turn

It is your turn on this task, free. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.
When your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.

Budget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.','scripted','openai/scripted','build','finished','done','{"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}','2026-11-22 16:34:16.393774','2026-11-22 16:34:16.685551','7f34a72872ba');
INSERT INTO "turns" VALUES('835cedca80ca','e83f3e95bdff','8e504c8868d7','kim','# Task DEFA-0003: failed

Organization: default
Assigned to: free (you)
Opened: 2026-11-22 16:34:16 UTC by kim

## Description

  failed

## Thread

[Nobody has written a comment yet.]

## Your turn

It is your turn on this task, free. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.
When your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.

Budget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.','scripted','openai/scripted','build','error','done','{"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}','2026-11-22 16:34:16.857776','2026-11-22 16:34:17.222991','7f34a72872ba');
INSERT INTO "turns" VALUES('ec317542cc99','847134b5c82e','4d27a32df710','kim','# Task DEFA-0004: done

Organization: default
Assigned to: free (you)
Opened: 2026-11-22 16:34:17 UTC by kim

## Description

  done

## Thread

[Nobody has written a comment yet.]

## Your turn

It is your turn on this task, free. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.
When your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.

Budget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.','scripted','openai/scripted','build','finished','done','{"tool_calls": 0, "input_tokens": 0, "thinking_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "duration_ms": 0}','2026-11-22 16:34:17.413874','2026-11-22 16:34:17.725001','7f34a72872ba');
INSERT INTO "turns" VALUES('0ec8dd78a722','b6b4ac15f1a6','0eadbba5f17a','kim','# Task DEFA-0005: canceled

Organization: default
Assigned to: free (you)
Opened: 2026-11-22 16:34:17 UTC by kim

## Description

  canceled

## Thread

[Nobody has written a comment yet.]

## Your turn

It is your turn on this task, free. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.
When your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.

Budget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.','scripted','openai/scripted','build','processing',NULL,'{}','2026-11-22 16:34:17.887979',NULL,'7f34a72872ba');
INSERT INTO "turns" VALUES('21b272f42693','80d9a5d87b64','c323ead6b023','kim','# Task DEFA-0006: holds solo

Organization: default
Assigned to: solo (you)
Opened: 2026-11-22 16:34:18 UTC by kim

## Description

  holds solo

## Thread

[Nobody has written a comment yet.]

## Your turn

It is your turn on this task, solo. Read the thread, do your part in the workspace, and write what matters to the others with the tool add_comment: they see your comments and the files, and nothing else.
When your part is done, write a last comment that says what you did, what is open, and who is next. Its last tag decides: @name hands the task to that agent, @user gives it back to the people. Then stop.

Budget of this turn: 50 iterations, USD 3.00, 1800 seconds. Hand on before it is spent: what is not written down then is lost.','scripted','openai/scripted','build','processing',NULL,'{}','2026-11-22 16:34:18.247215',NULL,'7f34a72872ba');
INSERT INTO "turns" VALUES('a2481daca7e8','b637ed30a453','b50ac323a892','system','given back','scripted','openai/scripted','build','processing',NULL,'{}','2026-11-22 16:34:18.459292',NULL,'7f34a72872ba');
INSERT INTO "turns" VALUES('f37023f7a2ea','6837ca70f371','8b7c9dc3f83d','system','queued again','scripted','openai/scripted','build','processing',NULL,'{}','2026-11-22 16:34:18.625755',NULL,'7f34a72872ba');
INSERT INTO "turns" VALUES('22d05839e24f','404f4dde5460','9d0817cb98bc','system','queued from checkpoint','scripted','openai/scripted','build','processing',NULL,'{}','2026-11-22 16:34:18.894037',NULL,'7f34a72872ba');
INSERT INTO "turns" VALUES('d91e630ae423','4f5d3dbcf55e','93cd8fbec08a','system','withdrawn','scripted','openai/scripted','build','processing',NULL,'{}','2026-11-22 16:34:19.382586',NULL,'7f34a72872ba');
INSERT INTO "turns" VALUES('fc8dfc3d181e','064c8e386079','8b2c140ab7bb','system','taken back removed','scripted','openai/scripted','build','processing',NULL,'{}','2026-11-22 16:34:19.830494',NULL,'7f34a72872ba');
INSERT INTO "turns" VALUES('e03b2788dda2','c7d3b4371253','6f13e840993b','system','none takes work','scripted','openai/scripted','build','processing',NULL,'{}','2026-11-22 16:34:21.030495',NULL,'7f34a72872ba');
CREATE TABLE web_sessions (
	id VARCHAR(12) NOT NULL, 
	secret_hash VARCHAR(64) NOT NULL, 
	role VARCHAR(16) NOT NULL, 
	created_at DATETIME NOT NULL, 
	expires_at DATETIME NOT NULL, 
	organization_id VARCHAR(12) NOT NULL, everywhere BOOLEAN DEFAULT 0 NOT NULL, 
	CONSTRAINT pk_web_sessions PRIMARY KEY (id), 
	CONSTRAINT uq_web_sessions_secret_hash UNIQUE (secret_hash), 
	CONSTRAINT fk_web_sessions_organization_id_organizations FOREIGN KEY(organization_id) REFERENCES organizations (id)
);
CREATE TABLE webhook_deliveries (
	id VARCHAR(40) NOT NULL, 
	webhook_id VARCHAR(12) NOT NULL, 
	event VARCHAR(64) NOT NULL, 
	data JSON NOT NULL, 
	attempts INTEGER NOT NULL, 
	status_code INTEGER, 
	error TEXT NOT NULL, 
	created_at DATETIME NOT NULL, 
	next_at DATETIME, 
	done_at DATETIME, 
	organization_id VARCHAR(12) NOT NULL, 
	CONSTRAINT pk_webhook_deliveries PRIMARY KEY (id), 
	CONSTRAINT fk_webhook_deliveries_webhook_id_webhooks FOREIGN KEY(webhook_id) REFERENCES webhooks (id), 
	CONSTRAINT fk_webhook_deliveries_organization_id_organizations FOREIGN KEY(organization_id) REFERENCES organizations (id)
);
CREATE TABLE webhooks (
	id VARCHAR(12) NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	url TEXT NOT NULL, 
	sealed_secret TEXT NOT NULL, 
	events JSON NOT NULL, 
	enabled BOOLEAN NOT NULL, 
	failing_since DATETIME, 
	last_at DATETIME, 
	last_error TEXT NOT NULL, 
	created_at DATETIME NOT NULL, 
	removed_at DATETIME, 
	organization_id VARCHAR(12) NOT NULL, 
	CONSTRAINT pk_webhooks PRIMARY KEY (id), 
	CONSTRAINT fk_webhooks_organization_id_organizations FOREIGN KEY(organization_id) REFERENCES organizations (id)
);
CREATE TABLE words (
	number INTEGER NOT NULL, 
	order_id VARCHAR(12) NOT NULL, 
	user VARCHAR(128) NOT NULL, 
	text TEXT NOT NULL, 
	"after" BOOLEAN NOT NULL, 
	interrupt BOOLEAN NOT NULL, 
	run_id VARCHAR(12), 
	at DATETIME NOT NULL, 
	organization_id VARCHAR(12) NOT NULL, 
	CONSTRAINT pk_words PRIMARY KEY (number), 
	CONSTRAINT fk_words_order_id_orders FOREIGN KEY(order_id) REFERENCES orders (id), 
	CONSTRAINT fk_words_organization_id_organizations FOREIGN KEY(organization_id) REFERENCES organizations (id)
);
INSERT INTO "words" VALUES(1,'38f9402b0820','kim','one more thing',1,0,NULL,'2026-11-22 16:34:07.918721','7f34a72872ba');
CREATE INDEX ix_api_tokens_organization_id ON api_tokens (organization_id);
CREATE INDEX ix_login_links_organization_id ON login_links (organization_id);
CREATE INDEX ix_web_sessions_organization_id ON web_sessions (organization_id);
CREATE INDEX ix_join_tokens_organization_id ON join_tokens (organization_id);
CREATE INDEX ix_drones_organization_id ON drones (organization_id);
CREATE INDEX ix_drones_public_key ON drones (public_key);
CREATE UNIQUE INDEX uq_drones_name_alive ON drones (organization_id, name) WHERE removed_at IS NULL;
CREATE INDEX ix_inbox_drone_id ON inbox (drone_id);
CREATE INDEX ix_inbox_organization_id ON inbox (organization_id);
CREATE INDEX ix_raw_events_organization_id ON raw_events (organization_id);
CREATE INDEX ix_providers_organization_id ON providers (organization_id);
CREATE UNIQUE INDEX uq_providers_name_alive ON providers (organization_id, name) WHERE removed_at IS NULL;
CREATE INDEX ix_projects_organization_id ON projects (organization_id);
CREATE UNIQUE INDEX uq_projects_slug_alive ON projects (organization_id, slug) WHERE removed_at IS NULL;
CREATE INDEX ix_sessions_organization_id ON sessions (organization_id);
CREATE INDEX ix_orders_drone_id ON orders (drone_id);
CREATE INDEX ix_orders_number ON orders (number);
CREATE INDEX ix_orders_organization_id ON orders (organization_id);
CREATE INDEX ix_orders_project_id ON orders (project_id);
CREATE INDEX ix_orders_session_id ON orders (session_id);
CREATE INDEX ix_orders_status ON orders (status);
CREATE INDEX ix_session_entries_number ON session_entries (number);
CREATE INDEX ix_session_entries_order_id ON session_entries (order_id);
CREATE INDEX ix_session_entries_organization_id ON session_entries (organization_id);
CREATE INDEX ix_session_entries_session_id ON session_entries (session_id);
CREATE INDEX ix_turns_organization_id ON turns (organization_id);
CREATE INDEX ix_turns_session_id ON turns (session_id);
CREATE INDEX ix_words_order_id ON words (order_id);
CREATE INDEX ix_words_organization_id ON words (organization_id);
CREATE INDEX ix_dispatches_closed_at ON dispatches (closed_at);
CREATE INDEX ix_dispatches_drone_id ON dispatches (drone_id);
CREATE INDEX ix_dispatches_order_id ON dispatches (order_id);
CREATE INDEX ix_dispatches_organization_id ON dispatches (organization_id);
CREATE INDEX ix_dispatches_published_at ON dispatches (published_at);
CREATE INDEX ix_runs_drone_id ON runs (drone_id);
CREATE INDEX ix_runs_order_id ON runs (order_id);
CREATE INDEX ix_runs_organization_id ON runs (organization_id);
CREATE INDEX ix_runs_status ON runs (status);
CREATE INDEX ix_steps_organization_id ON steps (organization_id);
CREATE INDEX ix_blobs_organization_id ON blobs (organization_id);
CREATE UNIQUE INDEX uq_organizations_acronym ON organizations (acronym);
CREATE INDEX ix_orders_agent_id ON orders (agent_id);
CREATE INDEX ix_orders_task_id ON orders (task_id);
CREATE INDEX ix_orders_state ON orders (organization_id, status);
CREATE INDEX ix_orders_mirrors ON orders (project_id, drone_id);
CREATE INDEX ix_orders_unended ON orders (status, drone_id) WHERE ended_at IS NULL;
CREATE INDEX ix_dispatches_open ON dispatches (organization_id, closed_at);
CREATE INDEX ix_runs_task_id ON runs (task_id);
CREATE INDEX ix_runs_totals ON runs (organization_id, agent_id, task_id, cost_usd, input_tokens, output_tokens, duration_ms);
CREATE INDEX ix_agents_organization_id ON agents (organization_id);
CREATE INDEX ix_tasks_organization_id ON tasks (organization_id);
CREATE INDEX ix_tasks_assignee_id ON tasks (assignee_id);
CREATE INDEX ix_tasks_queue ON tasks (organization_id, status, priority, queued_at);
CREATE INDEX ix_tasks_listed ON tasks (organization_id, number);
CREATE INDEX ix_comments_organization_id ON comments (organization_id);
CREATE INDEX ix_comments_thread ON comments (task_id, id);
CREATE UNIQUE INDEX uq_schedules_name_alive ON schedules (organization_id, name) WHERE removed_at IS NULL;
CREATE INDEX ix_schedules_organization_id ON schedules (organization_id);
CREATE INDEX ix_schedules_next_at ON schedules (next_at);
CREATE UNIQUE INDEX uq_triggers_name_alive ON triggers (organization_id, name) WHERE removed_at IS NULL;
CREATE INDEX ix_triggers_organization_id ON triggers (organization_id);
CREATE INDEX ix_trigger_deliveries_organization_id ON trigger_deliveries (organization_id);
CREATE INDEX ix_trigger_deliveries_at ON trigger_deliveries (at);
CREATE UNIQUE INDEX uq_webhooks_name_alive ON webhooks (organization_id, name) WHERE removed_at IS NULL;
CREATE INDEX ix_webhooks_organization_id ON webhooks (organization_id);
CREATE INDEX ix_webhook_deliveries_organization_id ON webhook_deliveries (organization_id);
CREATE INDEX ix_webhook_deliveries_webhook_id ON webhook_deliveries (webhook_id);
CREATE INDEX ix_webhook_deliveries_due ON webhook_deliveries (done_at, next_at);
COMMIT;
